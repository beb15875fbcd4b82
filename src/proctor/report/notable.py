"""Which rollouts a reader would want to see."""

from __future__ import annotations

import math

from proctor.report.lines import RolloutLine
from proctor.rollout import RolloutKey

EXTREMES = ("worst", "best", "longest answer")


class NotableRollouts:
    """The worst, the odd, the best."""

    def __init__(self) -> None:
        self._by_reason: dict[str, tuple[float, RolloutKey]] = {}
        self._most = [-math.inf] * len(EXTREMES)

    def see_outcome(self, line: RolloutLine) -> None:
        self._by_reason.setdefault(line.outcome.replace("_", " "), (0.0, line.key))

    def see_score(self, line: RolloutLine, reward: float) -> None:
        tokens, most = line.token_usage.output_tokens, self._most
        if -reward <= most[0] and reward <= most[1] and tokens <= most[2]:
            return
        for index, size in enumerate((-reward, reward, tokens)):
            if size > most[index]:
                most[index] = size
                self._by_reason[EXTREMES[index]] = (size, line.key)

    def keys(self, most: int = 4) -> dict[RolloutKey, str]:
        """Keys with the reason for each: the worst first, then the odd, then the best."""
        order = {"worst": 0, "longest answer": 2, "best": 3}  # what is odd comes second
        reasons = sorted(self._by_reason, key=lambda reason: order.get(reason, 1))
        chosen: dict[RolloutKey, str] = {}
        for reason in reasons:
            key = self._by_reason[reason][1]
            if key not in chosen and len(chosen) < most:
                chosen[key] = reason
        return chosen
