"""A shell in a sandbox of Inspect's: a file that the model must write, and that the scorer reads."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import Score, accuracy, scorer
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import sandbox


@scorer(metrics=[accuracy()])
def file_says():
    async def score(state, target):
        try:
            text = await sandbox().read_file("answer.txt")
        except FileNotFoundError:
            return Score(value=0, explanation="there is no answer.txt")
        return Score(value=1 if text.strip() == target.text else 0.25, answer=text)

    return score


@task
def write():
    return Task(
        dataset=[
            Sample(input="Copy question.txt to answer.txt.", target="hello", files={"question.txt": "hello"})
        ],
        solver=[use_tools(bash(timeout=30)), generate()],
        scorer=file_says(),
        sandbox="local",
    )
