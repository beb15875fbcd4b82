"""Every finding a checkup can make, once: its code and what it means. The documentation is made from here."""

from __future__ import annotations

CODES = {
    "E101": "The source cannot be read: a syntax error.",
    "E102": "There is no `load_environment()`, or no module to look for it in.",
    "E103": "Importing the module fails.",
    "E104": "An argument of `load_environment()` has no default and was not given with `-a`.",
    "E105": "`load_environment()` raises, or returns something that is no environment.",
    "E106": "`load_environment()` works once and fails the second time.",
    "E107": "The environment's own `check()` says that no rollout could succeed here.",
    "E108": "`pyproject.toml`, or the table of default settings in it, cannot be used.",
    "W111": "An argument has no default, so that the environment cannot be run without `-a`.",
    "W112": "Nothing says what the environment is: the module has no docstring.",
    "W113": "The folder has no `pyproject.toml`, so that it cannot be installed or published.",
    "E201": "Reading the tasks fails.",
    "E202": "There are no tasks.",
    "E203": "Two tasks have the same id: their results could not be told apart.",
    "E204": "The tasks differ from one load to the next: two runs would not measure the same.",
    "E205": "A task asks nothing: its prompt has no text.",
    "W211": "The answer stands in the prompt.",
    "W212": "Two tasks have the same content.",
    "E301": "The environment fails while it is played.",
    "E302": "Scoring fails.",
    "E303": "Something takes longer than `--timeout`.",
    "E304": "The process ends in the middle: `sys.exit()`, a crash, too little memory.",
    "E305": "A rollout cannot be played to its end, or the run cannot be started.",
    "W311": "Something is printed to standard output, where results belong.",
    "W312": "The environment fails while it is closed.",
    "W313": "Nothing ends a conversation with an agent that says nothing: there is no `max_turns`.",
    "E401": "Being right is not rewarded: gold answers earn no more than empty, random or exchanged ones.",
    "E402": "Scoring the same rollout twice gives two rewards.",
    "E403": "Every rollout has the same reward, whatever was said.",
    "W411": "Gold answers earn more on average, but not on most tasks.",
    "W412": "Gold answers do not reach the reward that counts as passed.",
    "N421": "A task has no gold answer, so that nobody can say whether being right is rewarded.",
    "N422": "Saying the gold answer does not reach the goal here: it cannot be judged without a gold agent.",
    "N423": "The environment asks a model of its own choice, and none was named with `-m`.",
}

SEVERITIES = {"E": "error", "W": "warning", "N": "note"}


def codes_table() -> str:
    rows = ["| code | meaning |", "|---|---|", *(f"| {code} | {text} |" for code, text in CODES.items())]
    return "\n".join(rows) + "\n"
