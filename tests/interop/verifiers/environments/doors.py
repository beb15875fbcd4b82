"""A game: a monitor rubric, an object for reward functions, a stop with a priority, a final response, an
empty rubric in a group, a dataset that is built when first read, and information as JSON."""

import json

import verifiers as vf
from datasets import Dataset


class Reader:
    def __call__(self, messages) -> str:
        return messages[-1]["content"].strip()


class Monitor(vf.Rubric):
    def __init__(self):
        super().__init__()
        self.add_metric(self.steps)

    async def steps(self, state: vf.State) -> float:
        return len(state["trajectory"])


class DoorsEnv(vf.MultiTurnEnv):
    def __init__(self, reader: Reader, **kwargs):
        super().__init__(**kwargs)
        self.reader = reader
        self.add_rubric(Monitor())

    async def setup_state(self, state: vf.State) -> None:
        state["lives"] = state["info"]["lives"]
        await super().setup_state(state)

    @vf.stop
    async def lost(self, state: vf.State) -> bool:
        return state["lives"] <= 0

    @vf.stop(priority=10)
    async def gave_up(self, state: vf.State) -> bool:
        return bool(state["trajectory"]) and state["trajectory"][-1]["completion"][-1]["content"] == "stop"

    async def env_response(self, messages: vf.Messages, state: vf.State) -> vf.Messages:
        door = self.reader(messages)
        if door == state["answer"]:
            state["final_env_response"] = [{"role": "user", "content": f"Open, {state['lives']} left."}]
            return state["final_env_response"]
        state["lives"] -= 1
        return [{"role": "user", "content": f"{door} is shut."}]


async def opened(completion, answer, reader) -> float:
    return float(any(reader([each]) == answer for each in completion if each["role"] == "assistant"))


async def thrifty(state) -> float:
    state["share"] = state["lives"] / state["info"]["lives"]
    return state["share"]


async def bonus(state) -> float:
    return 1.0 if state["share"] > 0.6 else 0.0


def load_environment() -> vf.Environment:
    def build() -> Dataset:
        rows = ({"lives": 2}, {"lives": 3, "hint": {"side": "left"}})
        return Dataset.from_list(
            [
                {"question": f"Door {n}?", "answer": str(n), "info": json.dumps(each)}
                for n, each in enumerate(rows)
            ]
        )

    reader = Reader()
    rubric = vf.Rubric(funcs=[opened, thrifty, bonus], weights=[1.0, 0.0, 0.5])
    rubric.add_class_object("reader", reader)
    rubric.add_metric(lambda completion: len(completion))
    return DoorsEnv(
        reader, dataset=build, eval_dataset=build, rubric=vf.RubricGroup([vf.Rubric(), rubric]), max_turns=4
    )
