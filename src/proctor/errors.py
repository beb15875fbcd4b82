"""Every failure Proctor names, by the boundary it crossed.

    ProctorError
    ├── ConfigError               the words given cannot be run; nothing was started       exit 2
    │   ├── UnknownNameError      an unregistered name, with the nearest ones
    │   └── FileError             everything that is wrong with one file, by line
    ├── StoreError                results cannot be written or read                        exit 1
    ├── InstallError              a package could not be installed                         exit 1
    └── RolloutError              becomes the outcome of one rollout; siblings carry on
        ├── ModelError            the provider could not answer                            model_error
        │   ├── AuthError         the key was refused
        │   ├── RequestRefusedError   the request itself was refused (400, 404, 422 …)
        │   ├── ContextTooLongError   the conversation no longer fits: truncated, not an error
        │   ├── RateLimitError    too many requests; may say when to come back             transient
        │   ├── OverloadedError   5xx                                                      transient
        │   ├── UnreachableError  no connection, or it broke                               transient
        │   ├── ModelTimeoutError no answer in time                                        transient
        │   └── MalformedReplyError   an answer that cannot be decoded                     transient
        ├── AgentError            the agent program failed                                 agent_error
        ├── EnvError              the environment failed                                   environment_error
        │   ├── MissingSecretError    it reads an environment variable that is not set
        │   ├── InfraError        its infrastructure failed, and may work next time        transient
        │   │   └── EnvLostError  it is gone, and with it whatever was played there
        │   └── SpoiledWorkspaceError   what the agent left in its folder cannot be graded: scored 0
        ├── GraderError           scoring failed                                           grader_error
        ├── DeadlineError         starting, playing or scoring took too long               timeout
        └── ExcludedError         the environment asks to leave this rollout out           excluded

A foreign exception is translated once, at the boundary where it was caught, and becomes a `Failure`.
Knows nothing of models, environments or files.
"""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

KEPT_FRAMES = 4
MOST_LINKS = 100
PROCTOR_HOME = str(Path(__file__).parent.absolute())
PYTHON_HOME = str(Path(os.__file__).parent.absolute())


class ProctorError(Exception):
    """Something Proctor has a sentence for."""


class ConfigError(ProctorError):
    """The requested evaluation cannot be run as configured."""


class UnknownNameError(ConfigError):
    """A name that is not registered."""


class FileError(ConfigError):
    """Everything that is wrong with one file, by line."""

    def __init__(self, file: str, problems: Iterable[tuple[int, str]]) -> None:
        self.problems = tuple(f"{file}:{line}: {text}" for line, text in sorted(set(problems)))
        super().__init__("\n".join(self.problems))


class StoreError(ProctorError):
    """Results could not be written or read."""


class InstallError(ProctorError):
    """A package could not be installed."""

    def __init__(self, message: str, last_lines: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.last_lines = tuple(last_lines)
        """The last lines of the installer's output."""


class RolloutError(ProctorError):
    """One rollout cannot continue."""

    outcome: ClassVar[str] = "environment_error"
    transient: ClassVar[bool] = False


class ModelError(RolloutError):
    """The model provider could not answer."""

    outcome = "model_error"

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class AuthError(ModelError):
    """The provider refused the key."""


class RequestRefusedError(ModelError):
    """The provider understood the request and will not answer it."""


class ContextTooLongError(ModelError):
    """The conversation no longer fits the model's context."""


class RateLimitError(ModelError):
    """The provider wants fewer requests for a while."""

    transient = True

    def __init__(
        self, message: str, *, status: int | None = 429, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_seconds = retry_after_seconds


class OverloadedError(ModelError):
    """The provider broke down while answering."""

    transient = True

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_seconds: float | None = None
    ) -> None:
        super().__init__(message, status=status)
        self.retry_after_seconds = retry_after_seconds


class UnreachableError(ModelError):
    """No connection to the provider, or it broke."""

    transient = True


class ModelTimeoutError(ModelError):
    """The provider did not answer in time."""

    transient = True


class MalformedReplyError(ModelError):
    """The provider's answer cannot be read."""

    transient = True


class AgentError(RolloutError):
    """The agent failed."""

    outcome = "agent_error"


class EnvError(RolloutError):
    """The environment failed."""


class MissingSecretError(EnvError):
    """The environment reads an environment variable that is not set."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the environment reads the variable {name}, which is not set")
        self.name = name


class InfraError(EnvError):
    """Infrastructure under the environment failed, and may work next time."""

    transient = True


class EnvLostError(InfraError):
    """The connection to the environment broke, and the rollouts played there are lost."""


class SpoiledWorkspaceError(EnvError):
    """What the agent left in its workspace cannot be graded, which is the agent's failure: it scores 0."""


class GraderError(RolloutError):
    """A rollout could not be scored."""

    outcome = "grader_error"


class DeadlineError(RolloutError):
    """Starting, playing or scoring a rollout took too long."""

    outcome = "timeout"


class ExcludedError(RolloutError):
    """The environment asks that this rollout be left out of every number."""

    outcome = "excluded"


# The names that verifiers has for some of them
Error = RolloutError
OverlongPromptError = ContextTooLongError
InvalidModelResponseError = MalformedReplyError
EmptyModelResponseError = MalformedReplyError
SandboxError = InfraError


class Failure(msgspec.Struct, frozen=True):
    """A failure as data: what a row stores and a report groups."""

    kind: str
    message: str
    phase: str = ""
    chain: str = ""
    transient: bool = False
    trace: tuple[str, ...] = ()
    location: str = ""
    """The line of the author's own code that failed, as file:line in function."""

    @classmethod
    def of(cls, error: BaseException, phase: str = "") -> Failure:
        return cls(
            kind=type(error).__name__,
            message=str(error) or type(error).__name__,
            phase=phase,
            chain=" -> ".join(type(link).__name__ for link in list_causes(error)),
            transient=is_transient(error),
            trace=() if isinstance(error, ModelError) else format_last_frames(find_root_error(error)),
            location="" if isinstance(error, ModelError) else find_author_line(find_root_error(error)),
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The end of a sentence that names the nearest known words, or all of them."""
    known = list(known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"; did you mean {' or '.join(map(repr, near))}?"
    return f"; known: {', '.join(known)}." if known else "."


def describe_os_error(error: OSError) -> str:
    """What the system says about it, without what a library adds."""
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or type(error).__name__


def is_transient(error: BaseException) -> bool:
    """Whether the same thing may work next time."""
    return any(getattr(link, "transient", False) for link in list_causes(error))


def is_environment_lost(error: BaseException | None) -> bool:
    """Whether the environment was lost during the rollout, whatever other error that caused."""
    return error is not None and any(isinstance(link, EnvLostError) for link in list_causes(error))


def find_missing_variable(error: BaseException) -> str | None:
    """The variable whose absence ended in this error: `os.environ[NAME]` raised it, or what it was raised
    from. An error raised while a missing variable was being handled is about something else."""
    link: BaseException | None = error
    for _ in range(MOST_LINKS):
        if link is None:
            return None
        if type(link) is KeyError and is_raised_by_environ(link):
            return str(link.args[0])
        link = link.exceptions[0] if isinstance(link, BaseExceptionGroup) else link.__cause__
    return None


def is_raised_by_environ(error: KeyError) -> bool:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    return frame is not None and frame.tb_frame.f_code is type(os.environ).__getitem__.__code__


def list_causes(error: BaseException) -> list[BaseException]:
    """The error and what lies behind it, outermost first."""
    links: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in links:
        links.append(link)
        link = find_cause(link)
    return links


def find_root_error(error: BaseException) -> BaseException:
    """The innermost error that was raised somewhere: the line its author wants to see."""
    return next(
        link for link in reversed(list_causes(error)) if link.__traceback__ is not None or link is error
    )


def find_cause(error: BaseException) -> BaseException | None:
    """What an error was raised from, over, or, for a group of errors, with."""
    if error.__cause__ is not None:
        return error.__cause__
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return None if error.__suppress_context__ else error.__context__


def find_author_line(error: BaseException) -> str:
    """The innermost line of the code that Proctor called: the author's, however deep a library raised."""
    frames = traceback.extract_tb(error.__traceback__)
    foreign = [frame for frame in frames if not is_machinery(frame.filename)]
    if not foreign:
        return ""
    home = str(Path(foreign[0].filename).parent)
    own = (frame for frame in reversed(foreign) if is_within(frame.filename, home))
    return format_frame(next(own, foreign[0]))


def is_machinery(filename: str) -> bool:
    """Whether a frame belongs to Proctor or to Python itself."""
    is_python = is_within(filename, PYTHON_HOME) and "site-packages" not in filename
    return is_python or is_within(filename, PROCTOR_HOME) or filename.startswith("<")


def is_within(filename: str, folder: str) -> bool:
    return filename.startswith(folder + os.sep)


def format_frame(frame: traceback.FrameSummary) -> str:
    return f"{frame.filename}:{frame.lineno} in {frame.name}"


def format_last_frames(error: BaseException) -> tuple[str, ...]:
    frames = traceback.extract_tb(error.__traceback__)[-KEPT_FRAMES:]
    return tuple(map(format_frame, frames))
