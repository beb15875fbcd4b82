"""Tools: a calculator in the solver's loop, and an agent that submits its answer."""

from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes, match
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import ToolError, tool

SAMPLES = [Sample(id=f"{a}x{b}", input=f"{a} times {b}?", target=str(a * b)) for a, b in ((6, 7), (12, 12))]


@tool
def multiply():
    async def execute(a: int, b: int):
        """Multiply two numbers.

        Args:
            a: The first.
            b: The second.
        """
        if a > 1000:
            raise ToolError("too large")
        return str(a * b)

    return execute


@task
def calculator():
    return Task(dataset=SAMPLES, solver=[use_tools(multiply()), generate()], scorer=match(numeric=True))


@task
def agent():
    return Task(dataset=SAMPLES, solver=react(tools=[multiply()]), scorer=includes(), message_limit=9)
