"""The t and the beta distribution, as far as intervals and tests need them. Knows nothing of samples."""

from collections.abc import Iterator
from math import exp, lgamma, log, log1p, sqrt


def t_critical(level: float, df: float) -> float:
    """The t that |T| stays below with probability `level`."""
    share = beta_quantile(level, 0.5, df / 2)
    return sqrt(df * share / (1 - share))


def t_p_value(t: float, df: float) -> float:
    """The two-sided p-value of a t statistic."""
    return regularized_beta(df / (df + t * t), df / 2, 0.5)


def beta_quantile(probability: float, a: float, b: float) -> float:
    """The x where the regularised incomplete beta function reaches `probability`."""
    check_probability(probability)
    low, high = 0.0, 1.0
    # Halves until no float lies between: never diverges, whatever the shape.
    while low < (middle := (low + high) / 2) < high:
        if regularized_beta(middle, a, b) < probability:
            low = middle
        else:
            high = middle
    return middle


def regularized_beta(x: float, a: float, b: float) -> float:
    """I_x(a, b), the distribution function of a beta variable."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast only below its mean
        return 1 - _lower_beta(1 - x, b, a)
    return _lower_beta(x, a, b)


def _lower_beta(x: float, a: float, b: float) -> float:
    scale = exp(a * log(x) + b * log1p(-x) + lgamma(a + b) - lgamma(a) - lgamma(b)) / a
    return scale / _continued_fraction(_beta_terms(x, a, b))


def _beta_terms(x: float, a: float, b: float) -> Iterator[float]:
    m = 0
    while True:
        yield -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        m += 1
        yield m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))


def _continued_fraction(terms: Iterator[float]) -> float:
    """1 + t1/(1 + t2/(1 + ...)), by the ratios of successive numerators and denominators."""
    value, above, below = 1.0, 1.0, 0.0
    for term in terms:
        above = 1 + term / above
        below = 1 / (1 + term * below)
        value *= above * below
        if not abs(above * below - 1) >= 1e-15:  # so put, NaN ends it too
            break
    return value


def check_probability(probability: float) -> None:
    if not 0 < probability < 1:
        raise ValueError(f"a level lies strictly between 0 and 1, like 0.95; got {probability}")
