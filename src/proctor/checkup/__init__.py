"""Is an environment fit to be measured with?

`checkup(…)` reads its source, loads it in a process of its own, plays it with agents whose worth is known,
and tells what it found, like a linter.
"""
