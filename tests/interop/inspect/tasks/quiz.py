"""Two tasks in one file: letters to choose from, and facts that several scorers look at."""

from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import (
    CORRECT,
    INCORRECT,
    PARTIAL,
    Score,
    accuracy,
    answer,
    choice,
    exact,
    includes,
    mean,
    scorer,
)
from inspect_ai.solver import chain_of_thought, generate, multiple_choice


@task
def letters():
    samples = [
        Sample(id="sky", input="What is blue?", choices=["grass", "the sky", "snow"], target="B"),
        Sample(id="milk", input="What is white?", choices=["coal", "ink", "milk"], target="C"),
    ]
    return Task(
        dataset=MemoryDataset(samples), solver=multiple_choice(), scorer=choice(), epochs=Epochs(2, "mode")
    )


@scorer(metrics=[accuracy()])
def nearly():
    async def score(state, target):
        text = state.output.completion.lower()
        value = CORRECT if target.text.lower() in text else PARTIAL if "france" in text else INCORRECT
        return Score(value=value, answer=state.output.completion, explanation="looked for the word")

    return score


@scorer(metrics={"length": [mean()], "polite": [mean()]})
def style():
    async def score(state, target):
        text = state.output.completion
        return Score(value={"length": len(text), "polite": "please" in text})

    return score


@task
def facts(think: bool = False):
    return Task(
        dataset=[
            Sample(id="fr", input="The capital of France?", target="Paris"),
            Sample(id="it", input="The capital of Italy?", target=["Rome", "Roma"]),
        ],
        solver=[chain_of_thought(), generate()] if think else generate(),
        scorer=[nearly(), includes(), exact(), answer("word"), style()],
    )
