"""Is an environment fit to be measured with?

`checkup(…)` reads its source, loads it in a process of its own, plays it with agents of known quality,
and reports findings like a linter.
"""
