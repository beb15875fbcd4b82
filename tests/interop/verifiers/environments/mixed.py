"""A group of environments, each with its own rubric."""

import verifiers as vf
from datasets import Dataset


def shout(completion, answer) -> float:
    return float(completion[-1]["content"] == answer.upper())


def whisper(completion, answer) -> float:
    return float(completion[-1]["content"] == answer.lower())


def load_environment() -> vf.Environment:
    loud = Dataset.from_list([{"question": f"Shout {word}", "answer": word} for word in ("pear", "fig")])
    quiet = Dataset.from_list([{"question": f"Whisper {word}", "answer": word} for word in ("PLUM", "Kiwi")])
    return vf.EnvGroup(
        envs=[
            vf.SingleTurnEnv(dataset=loud, rubric=vf.Rubric(funcs=[shout])),
            vf.SingleTurnEnv(dataset=quiet, rubric=vf.Rubric(funcs=[whisper])),
        ],
        env_names=["loud", "quiet"],
    )
