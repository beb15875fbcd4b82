"""As much of verifiers as an environment of one turn needs, for tests that cannot install the real one.

Answers to the names that Proctor's dialect uses; `make test-interop` compares with the real package.
"""

from __future__ import annotations

import asyncio
import inspect
from types import SimpleNamespace

__version__ = "0.1.99"


class Error(Exception): ...


class ModelError(Error): ...


class EmptyModelResponseError(ModelError): ...


class OverlongPromptError(Error): ...


class Client: ...


class Record(SimpleNamespace):
    def model_dump(self, exclude_none=False):
        return {name: value for name, value in vars(self).items() if value is not None or not exclude_none}


class Response(Record): ...


class ResponseMessage(Record): ...


class ToolCall(Record): ...


class Usage(Record): ...


class XMLParser:
    def __init__(self, fields, answer_field="answer"):
        self._fields = [(field, [field]) for field in fields]
        self.answer_field = answer_field

    def parse_answer(self, completion):
        text, field = completion[-1]["content"], self.answer_field
        return text.partition(f"<{field}>")[2].partition(f"</{field}>")[0].strip()


class Dataset(list):
    """Of Hugging Face's, what the dialect asks for."""

    def __getitem__(self, key):
        return [row[key] for row in self] if isinstance(key, str) else super().__getitem__(key)

    def select(self, numbers):
        return Dataset([self[number] for number in numbers])

    def to_list(self):
        return list(self)


class Rubric:
    def __init__(self, funcs, weights=None):
        self.funcs = list(funcs)
        self.weights = list(weights or [1.0] * len(self.funcs))

    async def score_group(self, states):
        for state in states:
            await self.score_one(state)

    async def score_one(self, state):
        state["metrics"] = {}
        for function in self.funcs:
            wanted = inspect.signature(function).parameters
            try:
                value = function(**{name: state[name] for name in wanted})
                value = float(await value if inspect.isawaitable(value) else value)
            except Exception:
                value = 0.0
            state["metrics"][function.__name__] = value
        state["reward"] = sum(
            weight * value for weight, value in zip(self.weights, state["metrics"].values(), strict=True)
        )


class SingleTurnEnv:
    def __init__(self, dataset, rubric, **settings):
        self.rubric = rubric
        self.sampling_args = {}
        self.dataset = Dataset(
            {
                "prompt": [{"role": "user", "content": row["question"]}],
                "answer": row["answer"],
                "example_id": number,
            }
            for number, row in enumerate(dataset)
        )
        for name, value in settings.items():
            setattr(self, name, value)

    def get_eval_dataset(self):
        return self.dataset

    async def rollout(self, row, client, model, sampling_args):
        state = {**row, "completion": [], "trajectory": [], "trajectory_id": str(id(row)), "error": None}
        try:
            response = await client.get_response(row["prompt"], model, sampling_args, state=state)
            message = response.message
            state["completion"] = [{"role": "assistant", "content": message.content}]
        except Error as error:
            state["error"] = error
        await asyncio.sleep(0)
        return {**state, "stop_condition": "max_turns_reached", "is_truncated": False}
