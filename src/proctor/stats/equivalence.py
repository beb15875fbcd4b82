"""Ask whether a difference is small enough: two one-sided tests against a margin.

"No difference was shown" is not "there is none"; this is the question for the second. Knows an estimate and
its standard error, and nothing of where they come from.
"""

from dataclasses import dataclass

from proctor.stats.distributions import t_p_value


@dataclass(frozen=True)
class MarginTests:
    """One-sided p-values against a margin: small values say that the difference lies on the named side."""

    p_above_lower: float
    """Of the difference being above -margin: 'no worse by more than the margin'."""
    p_below_upper: float
    """Of the difference being below +margin: 'no better by more than the margin'."""
    p_below_lower: float
    """Of the difference being below -margin: 'worse by more than the margin'."""

    @property
    def p_equivalent(self) -> float:
        """Of the difference lying between both margins."""
        return max(self.p_above_lower, self.p_below_upper)


def margin_tests(diff: float, se: float, df: float, margin: float) -> MarginTests:
    if margin <= 0:
        raise ValueError(f"a margin is a positive difference, such as 0.02; got {margin}")
    above = one_sided_p((diff + margin) / se, df)
    return MarginTests(above, one_sided_p((margin - diff) / se, df), 1 - above)


def one_sided_p(t: float, df: float) -> float:
    """The chance of a t as large as this one, or larger."""
    tail = t_p_value(t, df) / 2
    return tail if t >= 0 else 1 - tail
