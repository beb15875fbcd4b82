"""One line for each verdict. Knows verdicts and numbers, and nothing of terminals."""

from __future__ import annotations

from proctor.comparison.measure import Equivalence, MeasureComparison

VERDICTS = {
    "better": "better",
    "worse": "worse",
    "higher": "higher",
    "lower": "lower",
    "no_difference_shown": "no difference shown",
    "too_little_data": "too little data",
}
TESTS = {
    "mcnemar": "exact McNemar",
    "permutation": "permutation test",
    "t": "paired t test",
    "none": "no test",
}


def describe_verdict(measure: MeasureComparison, problem: str) -> str:
    """The verdict as a sentence; `problem` is why there is none."""
    words = VERDICTS[measure.verdict]
    if measure.verdict == "too_little_data":
        return f"{words}: {problem}"
    seen = f"{words}: {describe_difference(measure)} over {count_tasks(measure.n)}"
    p = f"{describe_p(measure.p_adjusted)} ({TESTS[measure.test]}{describe_adjustment(measure)})"
    if measure.verdict != "no_difference_shown":
        return f"{seen}, {p}"
    least = measure.smallest_detectable
    missed = "" if least is None else f"; it would often have missed one below {least:.3f}"
    return f"{seen}, {p}{missed}"


def describe_difference(measure: MeasureComparison) -> str:
    if measure.difference is None:
        return "no difference measured"
    interval = measure.interval
    if interval is None:
        return f"{measure.difference:+.3f}"
    return (
        f"{measure.difference:+.3f} ({interval.level * 100:g}% interval {interval.low:+.3f} to "
        f"{interval.high:+.3f})"
    )


def describe_p(p: float | None) -> str:
    if p is None:
        return "no p"
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def describe_adjustment(measure: MeasureComparison) -> str:
    return f", adjusted for {measure.tests} tests" if measure.tests > 1 else ""


def describe_equivalence(equivalence: Equivalence, problem: str) -> str:
    margin = f"{equivalence.margin:g}"
    p = describe_p(
        equivalence.p_equivalent if equivalence.verdict == "equivalent" else equivalence.p_no_worse
    )
    match equivalence.verdict:
        case "equivalent":
            return f"equivalent: the difference is smaller than {margin} either way, {p}"
        case "no_worse":
            return f"no worse: not lower by {margin} or more, {p}"
        case "worse":
            return f"worse by more than {margin}"
        case "not_shown":
            return f"not shown to be within {margin}: {p} for being no worse"
        case _:
            return f"too little data: {problem or 'the differences have no spread to judge by'}"


def count_tasks(n: int) -> str:
    return "1 task" if n == 1 else f"{n:,} tasks"
