"""Success within k tries: pass@k and pass^k."""

from math import comb


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


def _check_tries(n: int, c: int, k: int) -> None:
    if k < 1 or not 0 <= c <= n:
        raise ValueError(f"need k >= 1 and 0 <= c <= n, got n={n}, c={c}, k={k}")
