"""Success within k tries: pass@k and pass^k."""

from collections.abc import Callable, Sequence
from math import comb, fsum

PassMeasure = Callable[[int, int, int], float | None]


def pass_at_k(n: int, c: int, k: int) -> float | None:
    """The chance that at least one of k tries succeeds, from c successes in n; undefined when n < k."""
    _check_tries(n, c, k)
    if n < k:
        return None
    # Whole numbers until the last division: exact however large n is.
    every = comb(n, k)
    return (every - comb(n - c, k)) / every


def pass_hat_k(n: int, c: int, k: int) -> float | None:
    """The chance that all of k tries succeed (pass^k), from c successes in n; undefined when n < k."""
    _check_tries(n, c, k)
    return None if n < k else comb(c, k) / comb(n, k)


def pass_curve(tries: Sequence[tuple[int, int]], most: int, measure: PassMeasure) -> dict[int, float]:
    """A measure at 1, 2, 4, … and `most` tries, each a mean over the tasks that were tried often enough.

    Each task is a pair: how often it was tried, and how often that succeeded.
    """
    curve = {}
    for k in powers_of_two(most):
        values = [value for n, c in tries if (value := measure(n, c, k)) is not None]
        if values:
            curve[k] = fsum(values) / len(values)
    return curve


def powers_of_two(most: int) -> list[int]:
    """Those up to a number, and that number."""
    powers = [2**exponent for exponent in range(most.bit_length()) if 2**exponent <= most]
    return powers if powers[-1] == most else [*powers, most]


def _check_tries(n: int, c: int, k: int) -> None:
    if k < 1 or not 0 <= c <= n:
        raise ValueError(f"need k >= 1 and 0 <= c <= n, got n={n}, c={c}, k={k}")
