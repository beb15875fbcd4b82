"""Whether a task tells good respondents from bad ones: its correlation with the rest of the tasks.

Knows a table of scores. Knows nothing of runs or tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial, fsum, sqrt
from statistics import correlation

from proctor.stats.equivalence import one_sided_p
from proctor.stats.samples import all_agree

Table = Sequence[Sequence[float]]
"""A row of scores for each respondent, all with the same items in the same order."""


@dataclass(frozen=True)
class Discrimination:
    """One item against the mean of all others."""

    correlation: float | None
    """None where the item, or the rest, is the same for every respondent."""
    p_negative: float | None
    """How often a correlation as far below 0 comes about by chance; no smaller than so few respondents can
    show."""


def measure_discrimination(table: Table) -> list[Discrimination]:
    """The item-rest correlation of every item; needs three respondents."""
    respondents = len(table)
    if respondents < 3:
        return [Discrimination(None, None)] * (len(table[0]) if table else 0)
    totals = [fsum(row) for row in table]
    found = []
    for item in range(len(table[0])):
        own = [row[item] for row in table]
        rest = [total - score for total, score in zip(totals, own, strict=True)]
        found.append(_measure_item(own, rest))
    return found


def _measure_item(own: Sequence[float], rest: Sequence[float]) -> Discrimination:
    if all_agree(own) or all_agree(rest):
        return Discrimination(None, None)
    r = max(-1.0, min(1.0, correlation(own, rest)))
    df = len(own) - 2
    t = r * sqrt(df / max(1 - r * r, 1e-12))
    least = 1 / factorial(min(len(own), 20))  # the share of one order among all
    return Discrimination(r, max(one_sided_p(-t, df), least))
