"""Sums, answered in one turn: a dataset in the file, a prompt template, a scorer that looks at the end."""

from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import match
from inspect_ai.solver import generate, prompt_template, system_message


@task
def sums(largest: int = 4):
    return Task(
        dataset=[
            Sample(input=f"What is {a} + {a + 1}?", target=str(2 * a + 1), metadata={"a": a})
            for a in range(1, largest + 1)
        ],
        solver=[
            system_message("You add numbers."),
            prompt_template("{prompt}\n\nEnd with the number alone."),
            generate(),
        ],
        scorer=match(numeric=True),
    )
