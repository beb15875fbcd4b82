"""A shop with tools: parallel calls, a basket that belongs to one rollout, an argument the model never sees.

proctor eval run examples/shop.py -m openai/gpt-4.1-mini -n 2
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proctor import Rubric, State, StatefulToolEnv
from proctor.trace import Message

PRICES = {"apple": 0.5, "bread": 2.0, "cheese": 4.5}


def price(item: str) -> float:
    """Look up what an item costs.

    Args:
        item: Name of the item, in the singular.
    """
    if item not in PRICES:
        raise ValueError(f"we do not sell {item!r}; we sell {', '.join(PRICES)}")
    return PRICES[item]


def buy(item: str, basket: list[str], count: int = 1) -> str:
    """Put an item into the basket.

    Args:
        item: Name of the item, in the singular.
        count: How many.
    """
    price(item)
    basket.extend([item] * count)
    return f"The basket holds {', '.join(basket)}."


class Shop(StatefulToolEnv):
    """Every rollout has a basket of its own."""

    def __init__(self, rows: list[dict[str, Any]], rubric: Rubric) -> None:
        super().__init__(rows, rubric=rubric, tools=[price], max_turns=6)
        self.add_tool(buy, args_to_skip=["basket"])

    async def setup_state(self, state: State) -> None:
        state["basket"] = []

    def update_tool_args(
        self, tool_name: str, tool_args: dict[str, Any], messages: Sequence[Message], state: State
    ) -> dict[str, Any]:
        return {**tool_args, "basket": state["basket"]} if tool_name == "buy" else tool_args


def bought_the_right_things(state: State, answer: list[str]) -> float:
    return float(sorted(state["basket"]) == sorted(answer))


def load_environment() -> Shop:
    rows = [
        {"question": "Buy two apples and a bread.", "answer": ["apple", "apple", "bread"]},
        {"question": "Buy the cheapest thing in the shop.", "answer": ["apple"]},
        {"question": "Spend exactly 6.50 on two different things.", "answer": ["bread", "cheese"]},
    ]
    return Shop(rows, Rubric(bought_the_right_things))
