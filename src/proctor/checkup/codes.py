"""Every finding a checkup can make, once: its code and what it means. It also generates the docs."""

from __future__ import annotations

CODES = {
    "E101": "The source cannot be read: a syntax error.",
    "E102": "The package has no `load_environment()`, or no module to look for it in.",
    "E103": "Importing the module fails.",
    "E104": "An argument of `load_environment()` has no default and was not given with `-a`.",
    "E105": "`load_environment()` raises, or returns something that is not an environment.",
    "E106": "`load_environment()` works once and fails the second time.",
    "E107": "The environment's own `check()` reports that no rollout can succeed here.",
    "E108": "`pyproject.toml`, or the table of default settings in it, cannot be used.",
    "W111": "An argument has no default, so the environment cannot be run without `-a`.",
    "W112": "The environment is not described: the module has no docstring.",
    "W113": "The folder has no `pyproject.toml`, so it cannot be installed or published.",
    "W121": "It uses a part of its framework that does not work here.",
    "N121": "It is written for another framework, which plays it in a process of its own.",
    "N122": "It uses a part of its framework that you should know about.",
    "E201": "Reading the tasks fails.",
    "E202": "There are no tasks.",
    "E203": "Two tasks have the same id, so their results could not be distinguished.",
    "E204": "The tasks differ from one load to the next: two runs would not measure the same thing.",
    "E205": "A task's prompt has no text.",
    "W211": "The prompt contains the answer.",
    "W212": "Two tasks have the same content.",
    "E301": "The environment fails while it is played.",
    "E302": "Scoring fails.",
    "E303": "Something takes longer than `--timeout`.",
    "E304": "The process ends in the middle: `sys.exit()`, a crash, too little memory.",
    "E305": "A rollout cannot be played to its end, or the run cannot be started.",
    "E306": "Rollouts interfere: beside another one, or after it, the same answers earn a different reward.",
    "W311": "Something is printed to standard output, where results belong.",
    "W312": "The environment fails while it is closed.",
    "W313": "A conversation with a silent agent never ends: set `max_turns`.",
    "W314": "Rollouts share state: beside another one, or after it, a rollout sees different messages.",
    "E401": "Being right is not rewarded: gold answers earn no more than empty, random or exchanged ones.",
    "E402": "Scoring the same rollout twice gives two rewards.",
    "E403": "Every rollout has the same reward, whatever the agent answers.",
    "W411": "Gold answers earn more on average, but not on most tasks.",
    "W412": "Gold answers do not reach the reward that counts as passed.",
    "N421": "A task has no gold answer, so the checkup cannot tell whether a right answer is rewarded.",
    "N422": "Giving the gold answer is not enough here: it cannot be judged without a gold agent.",
    "N423": "The environment calls a model of its own choice, and you named none with `-m`.",
    "W511": "No rollout of any run passes the task: too hard, or impossible.",
    "W512": "All models give a task the same long answer, word for word: memorized, or given away.",
    "W513": "Two tasks are nearly the same, so they count twice and are not independent.",
    "W514": "Runs that do better elsewhere do worse on the task: its answer or its scoring may be wrong.",
    "W515": "All models give a task the same answer, and it fails: the answer in the dataset may be wrong.",
    "N521": "Every rollout of every run earns the same on the task, so it no longer distinguishes models.",
    "N522": "Too few runs, or too little evidence, to say whether better models do better on a task.",
    "N523": "A task in the runs is no longer in the environment, or not among those examined.",
}

SEVERITIES = {"E": "error", "W": "warning", "N": "note"}


def codes_table() -> str:
    rows = ["| code | meaning |", "|---|---|", *(f"| {code} | {text} |" for code, text in CODES.items())]
    return "\n".join(rows) + "\n"
