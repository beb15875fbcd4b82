"""Guess a number: several turns, a state of its own, a stop condition and a shaped reward.

proctor eval run examples/guess_number.py -m local -n 2 -r 2 -t 8
"""

from __future__ import annotations

import re

from proctor import MultiTurnEnv, Rubric, State, stop
from proctor.trace import Message, text_of


class GuessNumber(MultiTurnEnv):
    """The model guesses a number from 1 to 20; each wrong guess is answered with higher or lower."""

    async def setup_state(self, state: State) -> None:
        state["guesses"] = []

    async def env_response(self, messages: list[Message], state: State) -> str:
        found = re.findall(r"\d+", text_of(messages[-1]))
        if not found:
            return "Say a number from 1 to 20."
        guess = int(found[-1])
        state["guesses"].append(guess)
        if guess == state["info"]["secret"]:
            state["found"] = True
            return "Right."
        return "Higher." if guess < state["info"]["secret"] else "Lower."

    @stop
    def found(self, state: State) -> bool:
        return bool(state.get("found"))


def found_it(state: State) -> float:
    return float(bool(state.get("found")))


def quickness(state: State) -> float:
    """1 for the first guess, 0 for the last one allowed."""
    return max(0.0, 1 - (len(state["guesses"]) - 1) / 6) if state.get("found") else 0.0


def load_environment(max_turns: int = 6) -> GuessNumber:
    secrets = [7, 13, 2, 19, 11, 5]
    rows = [
        {
            "example_id": f"secret-{secret}",
            "question": "Guess my number from 1 to 20.",
            "info": {"secret": secret},
        }
        for secret in secrets
    ]
    return GuessNumber(
        rows,
        rubric=Rubric(found_it, quickness, weights=[1.0, 0.5]),
        system_prompt="Answer with one number and nothing else.",
        max_turns=max_turns,
        stops_after_response=True,
        sampling_args={"max_tokens": 12},
    )
