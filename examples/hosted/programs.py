"""Write a function, graded by running it in a sandbox that the server makes: never where the grader runs.

Push it, then run it there; without the flag the run fails and names it:

proctor eval run OWNER/programs --hosted --allow-sandbox-access
"""

from __future__ import annotations

import json
import re

from proctor import Rubric, SingleTurnEnv, sandbox
from proctor.trace import Message, text_of

TESTS: dict[str, dict[str, object]] = {
    "returns its text in reverse": {"pear": "raep", "": ""},
    "counts the vowels of its text": {"pear": 2, "rhythm": 0},
}
ANSWER = """
import json, sys
from solution import solve
print(json.dumps([solve(text) for text in json.load(sys.stdin)]))
"""


def code_in(reply: str) -> str:
    found = re.search(r"```(?:python)?\n(.*?)```", reply, re.DOTALL)
    return found[1] if found else reply


async def passes(completion: list[Message], answer: str) -> float:
    """The share of cases that come out right; the sandbox never learns what would be right."""
    expected = json.loads(answer)
    async with sandbox(minutes=5) as box:
        await box.write("solution.py", code_in(text_of(completion[-1])))
        await box.write("answer.py", ANSWER)
        ran = await box.run("python3 answer.py", seconds=20, stdin=json.dumps(list(expected)))
    given = answers_in(ran.output) if ran.code == 0 else []
    right = [wanted == got for wanted, got in zip(expected.values(), given, strict=False)]
    return float(sum(right) / len(expected))


def answers_in(output: str) -> list[object]:
    try:
        answers = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        return []
    return answers if isinstance(answers, list) else []


def load_environment() -> SingleTurnEnv:
    rows = [
        {"question": f"Write a Python function `solve(text)` that {what}.", "answer": json.dumps(cases)}
        for what, cases in TESTS.items()
    ]
    return SingleTurnEnv(rows, rubric=Rubric(passes), sampling_args={"max_tokens": 512})
