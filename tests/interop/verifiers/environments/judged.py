"""A judge: another model is asked by the rubric, with a client of its own."""

import os

import verifiers as vf
from datasets import Dataset
from openai import AsyncOpenAI


def load_environment() -> vf.Environment:
    rows = [{"question": f"Capital of {land}?", "answer": city} for land, city in CAPITALS.items()]
    client = AsyncOpenAI(base_url=os.environ["JUDGE_URL"], api_key="none")
    rubric = vf.JudgeRubric(judge_client=client, judge_model="judge")

    async def approved(judge, prompt, completion, answer, state) -> float:
        verdict = await judge(prompt, completion, answer, state)
        return 1.0 if "yes" in verdict.lower() else 0.0

    rubric.add_reward_func(approved, weight=2.0)
    return vf.SingleTurnEnv(dataset=Dataset.from_list(rows), rubric=rubric)


CAPITALS = {"France": "Paris", "Japan": "Tokyo", "Italy": "Rome"}
