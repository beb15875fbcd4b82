"""Multi turn: guess a number; state of its own, a stop condition, cleanup, columns of the dataset."""

import verifiers as vf
from datasets import Dataset


class GuessingEnv(vf.MultiTurnEnv):
    async def setup_state(self, state: vf.State) -> vf.State:
        state["guesses"] = []
        state["secret"] = int(state["answer"])
        return state

    @vf.stop
    async def guessed(self, state: vf.State) -> bool:
        return bool(state["guesses"]) and state["guesses"][-1] == state["secret"]

    @vf.cleanup
    async def count_guesses(self, state: vf.State) -> None:
        state["guess_count"] = len(state["guesses"])

    async def env_response(self, messages: vf.Messages, state: vf.State, **kwargs) -> vf.Messages:
        text = messages[-1]["content"]
        guess = int(text) if text.strip().isdigit() else -1
        state["guesses"].append(guess)
        hint = "Correct." if guess == state["secret"] else "Higher." if guess < state["secret"] else "Lower."
        return [{"role": "user", "content": hint}]


async def solved(state) -> float:
    return 1.0 if state["secret"] in state["guesses"] else 0.0


def efficiency(state, info) -> float:
    return 1.0 - len(state["guesses"]) / info["allowed"]


def load_environment() -> vf.Environment:
    rows = [
        {"question": f"Game {secret}: guess my number.", "answer": str(secret), "info": {"allowed": 8}}
        for secret in (3, 5, 6)
    ]
    rubric = vf.Rubric(funcs=[solved, efficiency], weights=[1.0, 0.5])
    return GuessingEnv(dataset=Dataset.from_list(rows), rubric=rubric, max_turns=4)
