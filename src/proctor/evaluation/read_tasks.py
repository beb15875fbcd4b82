"""The tasks of an evaluation. Whatever an environment raises becomes a ConfigError of one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from proctor.errors import ConfigError, ProctorError
from proctor.evaluation.prepare import Prepared
from proctor.task import Task


def read_tasks(prepared: Prepared) -> Iterable[Task]:
    with explain_errors(prepared):
        return prepared.tasks()


def list_tasks(prepared: Prepared) -> list[Task]:
    """All of them at once."""
    with explain_errors(prepared):
        return list(prepared.tasks())


@contextmanager
def explain_errors(prepared: Prepared) -> Iterator[None]:
    try:
        yield
    except ProctorError:
        raise
    except (Exception, SystemExit) as error:
        raise ConfigError(
            f"{prepared.config.env_id}: reading the tasks failed: {type(error).__name__}: {error}"
        ) from error
