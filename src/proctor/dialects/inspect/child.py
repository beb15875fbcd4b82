"""Load and play a task of Inspect. Runs in that task's own Python; knows nothing of Proctor.

One evaluation of Inspect stays open for the life of this process, and each rollout is one sample added to it.
Solvers, tools, sandboxes, limits and scorers are Inspect's; only its model is ours.
"""

from __future__ import annotations

import ast
import asyncio
import contextvars
import math
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from inspect_ai import SampleSource, Task, __version__, enqueue_sample, eval_async, task_with
from inspect_ai._eval.loader import load_tasks
from inspect_ai.log._samples import active_samples, sample_active
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, get_model, modelapi
from inspect_ai.model._openai import (
    chat_choices_from_openai,
    messages_to_openai,
    model_output_from_openai,
    openai_chat_tool_choice,
    openai_chat_tools,
    openai_completion_params,
)
from openai.types.chat import ChatCompletion

from . import records, sandboxes

PROVIDER = "proctor"
SETTINGS = (
    *("message_limit", "token_limit", "turn_limit", "time_limit", "working_limit"),
    *("sandbox", "version", "metadata"),
)
"""Attributes of a task that plain data can set."""
MOST_AT_ONCE = 10_000
"""Proctor limits how many rollouts and requests are under way; Inspect need not."""
OPTIONS = {
    "epochs": 1,
    "max_samples": MOST_AT_ONCE,
    "max_connections": MOST_AT_ONCE,
    "fail_on_error": False,
    "retry_on_error": 0,
    "score_on_error": False,
    "score_display": False,
    "log_samples": False,
    "log_realtime": False,
    "log_model_api": False,
    "ctl_server": False,
}
"""Proctor counts, retries and stores; a sample that fails ends nothing but itself."""
ENDING_SECONDS = 15.0
TOO_LONG = "context_length_exceeded"
CHARACTERS_PER_TOKEN = 4

SampleKey = tuple[str, int]
"""A sample's id as text, and its epoch: each is played once."""


def load(params: dict[str, Any], host: Any) -> LoadedTask:
    """Import the file and make its task, as `inspect eval FILE@TASK -T …` does it."""
    file, name = params["file"], params["task"]
    check_arguments(file, name, params["arguments"])
    tasks = load_tasks([f"{file}@{name}"], params["arguments"])
    if len(tasks) != 1:
        raise ValueError(f"{name} in {file} made {len(tasks)} tasks, where one was expected")
    played = LoadedTask(tasks[0], host)
    if params.get("settings"):
        played.configure(params["settings"])
    return played


def check_arguments(file: str, name: str, arguments: dict[str, Any]) -> None:
    """Inspect leaves out arguments that a task does not take; a misspelled one must not go unnoticed."""
    tree = ast.parse(Path(file).read_bytes(), file)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not functions or functions[0].args.kwarg is not None:
        return
    given = functions[0].args
    known = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    unknown = [each for each in arguments if each not in known]
    if unknown:
        takes = f"it takes {', '.join(known)}" if known else "it takes none"
        error = TypeError(f"the task {name!r} has no argument {unknown[0]!r}; {takes}")
        error.proctor_details = {"where": f"{file}:{functions[0].lineno}"}  # type: ignore[attr-defined]
        raise error


class LoadedTask:
    """One task, and the results of its rollouts until they are forgotten."""

    def __init__(self, task: Any, host: Any) -> None:
        if getattr(task, "sample_source", None) is not None:
            raise ValueError(
                "its dataset is a SampleSource, which makes samples while it runs; not supported"
            )
        self.task = task
        self.samples = {number_samples(sample, index): sample for index, sample in enumerate(task.dataset)}
        self.host = host
        self.evaluation: OpenEvaluation | None = None
        self.results: dict[int, Any] = {}

    def describe(self) -> dict[str, Any]:
        task = self.task
        return {
            "size": len(self.samples),
            "version": __version__,
            "checks": True,
            "details": {
                "task": task.name,
                "scorers": [describe_object(each) for each in task.scorer or ()],
                "epochs": task.epochs,
            },
        }

    # Over the control socket

    def tasks(self, start: int, stop: int) -> list[dict[str, Any]]:
        chosen = list(self.samples.items())[start:stop]
        return [records.task_of(key, sample) for key, sample in chosen]

    def configure(self, settings: dict[str, Any]) -> None:
        """Limits, a sandbox and the like, as `task_with` takes them."""
        unknown = [name for name in settings if name not in SETTINGS]
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not one of {', '.join(SETTINGS)}")
        task_with(self.task, **settings)

    def set_concurrency(self, concurrency: int) -> None:
        """Inspect gets whatever Proctor sends."""

    def check(self) -> None:
        sandboxes.require_sandboxes(self.task, self.samples.values())

    # Over the calls socket

    async def play(self, session: int, task: Any, model: str) -> dict[str, Any]:
        if self.evaluation is None or self.evaluation.has_ended:
            self.evaluation = OpenEvaluation(self.task, self.host, model)
        result = await self.evaluation.play(session, self.samples[task])
        self.results[session] = result
        return dict(records.describe_play(result))

    async def score(self, session: int) -> dict[str, Any]:
        return dict(records.describe_score(self.results[session]))

    async def forget(self, session: int) -> None:
        self.results.pop(session, None)
        if self.evaluation is not None:
            await self.evaluation.wait_for_end_of(session)

    async def close(self) -> None:
        if self.evaluation is not None:
            await self.evaluation.close()


def number_samples(sample: Any, index: int) -> Any:
    """Its id; samples without one are counted from 1, as Inspect does it."""
    if sample.id is None:
        sample.id = index + 1
    return sample.id


def describe_object(value: Any) -> str:
    return str(getattr(value, "__qualname__", type(value).__name__)).partition(".")[0]


class OpenEvaluation(SampleSource):  # type: ignore[misc]
    """An evaluation that runs what it is given, sample by sample, until it is closed."""

    def __init__(self, task: Any, host: Any, model: str) -> None:
        self.sessions: dict[SampleKey, int] = {}
        self._results: dict[SampleKey, asyncio.Future[Any]] = {}
        self._epochs: Counter[str] = Counter()
        self._wake = asyncio.Event()
        self._started: asyncio.Future[contextvars.Context] = asyncio.get_running_loop().create_future()
        self._is_closing = False
        self._folder = tempfile.mkdtemp(prefix="proctor-inspect-")
        HostModel.host, HostModel.sessions = host, self.sessions
        with_source = task_with(copy_task(task), dataset=self)
        self._running = asyncio.create_task(self._run(with_source, model))

    @property
    def has_ended(self) -> bool:
        return self._running.done()

    async def play(self, session: int, sample: Any) -> Any:
        """The finished sample, as Inspect would have logged it."""
        context = await asyncio.shield(self._started)
        self._epochs[str(sample.id)] += 1
        key = (str(sample.id), self._epochs[str(sample.id)])
        result = self._results[key] = asyncio.get_running_loop().create_future()
        self.sessions[key] = session
        # In the evaluation's own context, which is how Inspect knows where the sample belongs.
        context.run(enqueue_sample, sample.model_copy(deep=True), epoch=key[1])
        self._wake.set()
        try:
            return await asyncio.shield(result)
        except asyncio.CancelledError:
            interrupt_sample(key)
            raise

    async def wait_for_end_of(self, session: int) -> None:
        """Until an interrupted sample has cleaned up, or for as long as that may take."""
        key = next((key for key, each in self.sessions.items() if each == session), None)
        if key is None:
            return
        await asyncio.wait([self._results[key]], timeout=ENDING_SECONDS)
        self.sessions.pop(key, None)
        self._results.pop(key, None)

    async def close(self) -> None:
        self._is_closing = True
        self._wake.set()
        await asyncio.wait([self._running], timeout=ENDING_SECONDS)
        self._running.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def _run(self, task: Any, model: str) -> None:
        try:
            asked = get_model(f"{PROVIDER}/{model or 'model'}", memoize=False)
            logs = await eval_async(task, model=asked, log_dir=self._folder, **OPTIONS)
            error = logs[0].error if logs else None
            message = error.message if error is not None else "the evaluation ended"
        except Exception as failure:
            message = f"{type(failure).__name__}: {failure}"
        self._fail(RuntimeError(f"Inspect could not run the task: {message}"))

    def _fail(self, error: Exception) -> None:
        """Nothing more comes from here: its sandboxes could not be started, for example."""
        for each in (self._started, *self._results.values()):
            if not each.done():
                each.set_exception(error)
                each.exception()  # retrieved, in case no caller waits any more

    # Called by Inspect

    async def next_samples(self) -> list[Any] | None:
        if not self._started.done():
            self._started.set_result(contextvars.copy_context())
        await self._wake.wait()
        self._wake.clear()
        return None if self._is_closing else []

    async def sample_complete(self, sample: Any) -> None:
        result = self._results.get((str(sample.id), sample.epoch))
        if result is not None and not result.done():
            result.set_result(sample)

    async def sample_abandoned(self, sample: Any, epoch: int) -> None:
        result = self._results.get((str(sample.id), epoch))
        if result is not None and not result.done():
            result.set_exception(RuntimeError("Inspect cancelled the sample before it began"))


def copy_task(task: Task) -> Task:
    """A shallow copy: `task_with` changes the task that it is given."""
    copied = Task.__new__(Task)
    copied.__dict__.update(task.__dict__)
    return copied


def interrupt_sample(key: SampleKey) -> None:
    for active in active_samples():
        if (str(active.sample.id), active.epoch) == key:
            active.interrupt("cancel")


class HostModel(ModelAPI):  # type: ignore[misc]
    """Asks the model of the rollout that asks, through Proctor."""

    host: Any = None
    sessions: dict[SampleKey, int]

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008
        **_: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)

    async def generate(
        self,
        input: Any,  # noqa: A002
        tools: Any,
        tool_choice: Any,
        config: Any,
    ) -> ModelOutput:
        if (config.num_choices or 1) > 1:
            raise ValueError("num_choices above 1 is not supported: Proctor's models give one answer")
        body = openai_completion_params(self.model_name, config, bool(tools))
        body = {**body, **(body.pop("extra_body", None) or {}), "messages": await messages_to_openai(input)}
        body.pop("n", None)
        if tools:
            body["tools"] = openai_chat_tools(tools)
            body["tool_choice"] = openai_chat_tool_choice(tool_choice)
        try:
            answer = await self.host.request("complete", {"session": self._find_session(), "body": body})
        except self.host.RefusedError as error:
            if error.code != TOO_LONG:
                raise
            return ModelOutput.from_content(self.model_name, str(error), "model_length", str(error))
        completion = ChatCompletion.model_validate(answer)
        return model_output_from_openai(completion, chat_choices_from_openai(completion, tools))

    def _find_session(self) -> int:
        active = sample_active()
        if active is None:
            raise RuntimeError("the model was called outside of any sample, where no rollout could record it")
        return self.sessions[(str(active.sample.id), active.epoch)]

    async def count_text_tokens(self, text: str) -> int:
        """An estimate: Inspect's own would download a table first."""
        return math.ceil(len(text) / CHARACTERS_PER_TOKEN)

    def max_connections(self) -> int:
        return MOST_AT_ONCE


@modelapi(name=PROVIDER)  # type: ignore[untyped-decorator]
def find_host_model() -> type[ModelAPI]:
    return HostModel
