r"""MathRubric: is the answer mathematically equal to the right one?

A model's formula may keep a computer algebra system busy for ever, so the comparison happens in processes
of its own, each check with a deadline. A hopeless answer is the model's fault and scores 0; a right answer
that cannot be read is the task's fault, and makes every rollout of it a grader_error.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import weakref
from collections.abc import Sequence
from functools import partial
from numbers import Number
from typing import Any

from proctor.env.functions import RewardFunction
from proctor.env.math_worker import BOXED, EXACT, PROSE
from proctor.env.parsers import Completion, MaybeThinkParser, Parser, extract_boxed, extract_boxed_answer
from proctor.env.rubric import Rubric
from proctor.env.state import State
from proctor.errors import ConfigError, GraderError, InfraError
from proctor.support.threads import Threads

KEPT_TEXT = 10_000
"""Characters read from the end of a text without a box; a final answer does not come earlier."""
LONGEST_ANSWER = 50_000
"""Characters of an answer that is compared at all."""
START_SECONDS = 60.0
PATIENCE = 12
"""A comparison is limited in CPU time; on a busy machine it may take this many times longer."""
OUT_OF_TIME = -getattr(signal, "SIGPROF", 0)
"""Exit code of a worker that exceeded its CPU time."""

PLAIN = re.compile(r"[+-]?\d+(?:\.\d+)?(?:/[1-9]\d*)?")
"""Right answers that are readable without asking a worker."""


class MathRubric(Rubric):
    r"""Scores `correct_answer` after the given functions; needs the extra `math`.

    The answer is what the parser reads: without one of its own, what the last `\boxed{…}` after the thought
    holds, and nothing if there is none. It is compared as verifiers compares it. With `lenient`, the answer
    is the last box in what the parser reads or, without a box, all of it, and units, percentages and the
    notation of programs are understood. The metric `math_timeouts` is 1 for a rollout whose answer could not
    be compared in time, and so scored 0.
    """

    def __init__(
        self,
        *functions: RewardFunction | Sequence[Any] | Parser | None,
        funcs: Sequence[RewardFunction] | None = None,
        weights: Sequence[float] | None = None,
        parser: Parser | None = None,
        timeout_seconds: float = 5.0,
        max_workers: int | None = None,
        max_verify_chars: int = LONGEST_ANSWER,
        lenient: bool = False,
    ) -> None:
        if importlib.util.find_spec("math_verify") is None:
            raise ConfigError("MathRubric needs math-verify: pip install 'proctor[math]'.")
        super().__init__(*functions, funcs=funcs, weights=weights, parser=parser)
        self.max_verify_chars = max_verify_chars
        self.lenient = lenient
        if not lenient and not self.has_own_parser:
            self.has_own_parser = True
            self.parser = self.objects["parser"] = MaybeThinkParser(
                partial(extract_boxed_answer, strict=True)
            )
        self.workers = MathWorkerPool(max_workers or min(4, os.cpu_count() or 1), timeout_seconds)
        self._problem: dict[str, str] = {}
        self.add_reward_func(self.correct_answer)
        self.add_metric(self.math_timeouts)

    async def correct_answer(self, completion: Completion, answer: Any, state: State) -> float:
        """1.0 if the completion's answer equals the right answer, else 0.0."""
        state["math_timeouts"] = 0.0
        gold = gold_text(answer) if self.lenient else require_gold(answer)
        problem = await self._describe_problem(gold)
        if problem:
            raise GraderError(f"the right answer {gold[:80]!r} {problem}")
        candidate, form = self.extract_answer(completion)
        if not candidate or len(candidate) > self.max_verify_chars:
            return 0.0
        if self.lenient and strip_delimiters(candidate) == gold:
            return 1.0
        try:
            return float(await self.workers.ask({"gold": gold, "said": candidate, "form": form}))
        except ComparisonFailedError:
            state["math_timeouts"] = 1.0
            return 0.0

    async def math_timeouts(self, state: State) -> float:
        return float(state["math_timeouts"])

    def extract_answer(self, completion: Completion) -> tuple[str, str]:
        """The answer in a completion, and how a worker has to read it."""
        answer = self.parser.parse_answer(completion)
        text = "" if answer is None else str(answer)
        if not self.lenient:
            return text, BOXED
        boxed = extract_boxed(text.strip())
        return (text.strip()[-KEPT_TEXT:], PROSE) if boxed is None else (boxed, EXACT)

    async def close(self) -> None:
        """End the worker processes; they are started again when needed."""
        self.workers.close()

    async def _describe_problem(self, gold: str) -> str:
        """Why a right answer cannot be compared with anything; empty if it can."""
        if PLAIN.fullmatch(gold):
            return ""
        if gold not in self._problem:
            try:
                form = EXACT if self.lenient else BOXED
                readable = await self.workers.ask({"read": gold, "form": form})
                self._problem[gold] = "" if readable else "cannot be read as mathematics"
            except ComparisonFailedError as error:
                self._problem[gold] = str(error)
        return self._problem[gold]


class ComparisonFailedError(Exception):
    """A worker exceeded its time, or died twice."""


class MathWorkerPool:
    """Worker processes: started on demand, kept warm, killed when late. Bound to no event loop."""

    def __init__(self, most: int, timeout_seconds: float) -> None:
        self.most = most
        self.timeout_seconds = timeout_seconds
        self._alive: set[MathWorker] = set()
        self._idle: list[MathWorker] = []
        self._threads = Threads(2 * most)  # the thread of a killed worker still has to reap it
        self._slots: tuple[asyncio.AbstractEventLoop, asyncio.Semaphore] | None = None
        weakref.finalize(self, kill_all, self._alive)

    async def ask(self, request: dict[str, Any]) -> bool:
        """A worker's answer; finding or starting one does not count against its time."""
        async with self._semaphore():
            try:
                return await self._exchange(self._idle.pop() if self._idle else await self._start(), request)
            except EOFError:  # perhaps not because of the request
                try:
                    return await self._exchange(await self._start(), request)
                except EOFError as error:
                    raise ComparisonFailedError("makes the comparison crash") from error

    def close(self) -> None:
        self._idle.clear()
        kill_all(self._alive)

    async def _exchange(self, worker: MathWorker, request: dict[str, Any]) -> bool:
        patience = self.timeout_seconds * PATIENCE
        request = {**request, "seconds": self.timeout_seconds, "patience": patience}
        reply = None
        try:
            async with asyncio.timeout(patience):
                reply = await self._threads.run(partial(worker.exchange, request))
        except TimeoutError as error:
            raise InfraError(
                f"comparing formulas did not get {self.timeout_seconds:g} s of CPU time in {patience:g} s: "
                f"the machine is too busy"
            ) from error
        except EOFError as error:
            if worker.process.returncode == OUT_OF_TIME:
                raise ComparisonFailedError(f"is not compared within {self.timeout_seconds:g} s") from error
            raise
        finally:
            if reply is None:
                self._discard(worker)
            else:
                self._idle.append(worker)
        return bool(reply["ok"])

    async def _start(self) -> MathWorker:
        try:
            worker = MathWorker()
        except OSError as error:
            raise InfraError(f"the process for comparing formulas could not be started: {error}") from error
        self._alive.add(worker)
        ready = False
        try:
            async with asyncio.timeout(START_SECONDS):
                reply = await self._threads.run(worker.receive)
            ready = reply["ok"]
        except TimeoutError as error:
            raise InfraError(
                f"a process for comparing formulas took over {START_SECONDS:g} s to start"
            ) from error
        except EOFError as error:
            raise InfraError("a process for comparing formulas ended before it was ready") from error
        finally:
            if not ready:
                self._discard(worker)
        if not ready:
            raise GraderError(f"formulas cannot be compared here: {reply['error']}")
        return worker

    def _discard(self, worker: MathWorker) -> None:
        self._alive.discard(worker)
        worker.kill()

    def _semaphore(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._slots is None or self._slots[0] is not loop:
            self._slots = loop, asyncio.Semaphore(self.most)
        return self._slots[1]


class MathWorker:
    """One process of `proctor.env.math_worker`. Its methods block; `kill` may be called meanwhile."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "proctor.env.math_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=worker_environment(),
        )

    def exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        except OSError:
            self.dispose()
            raise EOFError from None
        return self.receive()

    def receive(self) -> dict[str, Any]:
        """The next reply; EOFError if the process has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            self.dispose()
            raise EOFError
        reply: dict[str, Any] = json.loads(line)
        return reply

    def kill(self) -> None:
        self.process.kill()

    def dispose(self) -> None:
        """Reap an ended process and close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(OSError):  # unwritten data
                if pipe is not None:
                    pipe.close()


def worker_environment() -> dict[str, str]:
    """Our module path but no secrets: a model wrote what a worker reads."""
    kept = ("PATH", "PYTHONHOME", "LD_LIBRARY_PATH", "SYSTEMROOT")
    environ = {name: os.environ[name] for name in kept if name in os.environ}
    return {**environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def kill_all(workers: set[MathWorker]) -> None:
    for worker in workers:
        worker.kill()
    while workers:
        workers.pop().dispose()


def gold_text(answer: Any) -> str:
    """The right answer as text, without the box and dollar signs around it."""
    if not isinstance(answer, (str, Number)):
        raise GraderError(f"the right answer must be a text or a number, not {type(answer).__name__}")
    text = strip_delimiters(extract_boxed(str(answer), or_text=True))
    if not text:
        raise GraderError("the task has no right answer to compare with")
    return text


def require_gold(answer: Any) -> str:
    """The right answer as text, as it is."""
    if not isinstance(answer, (str, Number)):
        raise GraderError(f"the right answer must be a text or a number, not {type(answer).__name__}")
    if not str(answer).strip():
        raise GraderError("the task has no right answer to compare with")
    return str(answer)


def strip_delimiters(text: str) -> str:
    """A formula without its delimiters."""
    text = " ".join(text.split())
    for start, end in (("$$", "$$"), ("$", "$"), (r"\(", r"\)"), (r"\[", r"\]")):
        inner = text.removeprefix(start).removesuffix(end)
        if len(inner) == len(text) - len(start + end) and start not in inner:
            return inner.strip()
    return text
