"""A grader that is a model: the evaluated one, since no other is named."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import model_graded_qa


@task
def essays():
    return Task(
        dataset=[Sample(input=f"Praise the number {n}.", target="It must name the number.") for n in (3, 4)],
        scorer=model_graded_qa(partial_credit=True),
    )
