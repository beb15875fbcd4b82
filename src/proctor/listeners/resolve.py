"""The requested listeners: created by name, and closed when the run is over.

Your own listeners are registered as factories under the entry points `proctor.listeners`. Loads only what is
requested. Knows nothing of what listeners do.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from proctor import plugins
from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig, Presentation
from proctor.config.user_settings import read_user_settings
from proctor.contracts import Listener
from proctor.errors import ConfigError, ProctorError
from proctor.listeners.debug_log import log_event
from proctor.optional_contracts import Closable
from proctor.support.logs import log

if TYPE_CHECKING:
    from proctor.listeners.upload import Upload

CLOSING_SECONDS = 15.0
"""What all listeners together may take to finish; the results are safe by then."""


class ListenerFactory(Protocol):
    """Makes the listener of one run. It may have `async def close()`, awaited when the run is over, and a
    `final_message`, printed after that."""

    def __call__(self, config: EvalConfig, endpoint: Endpoint) -> Listener: ...


def listeners_for(config: EvalConfig, endpoint: Endpoint, shown: Presentation) -> list[Listener]:
    """The listeners that this run asks for; raises before anything is started if one cannot be created."""
    listeners = [create_listener(name, config, endpoint) for name in dict.fromkeys(shown.listener)]
    if shown.verbose:
        listeners.append(log_event)
    if shown.heartbeat_url is not None:
        from proctor.listeners.heartbeat import heartbeat_at

        listeners.append(heartbeat_at(shown.heartbeat_url))
    if shown.upload is not False and (upload := choose_upload(asked=bool(shown.upload))) is not None:
        listeners.append(upload)
    return listeners


def choose_upload(*, asked: bool) -> Upload | None:
    """The upload of a run: if requested, or if your settings upload every run."""
    if not asked and not read_user_settings(os.environ).upload:
        return None
    from proctor.listeners.upload import create_upload, create_usual_upload

    return create_upload() if asked else create_usual_upload()


def create_listener(name: str, config: EvalConfig, endpoint: Endpoint) -> Listener:
    factory: ListenerFactory = plugins.load(plugins.LISTENERS, name)
    try:
        return factory(config, endpoint)
    except ProctorError:
        raise
    except Exception as error:
        raise ConfigError(f"listener {name!r} cannot be made: {type(error).__name__}: {error}") from error


async def close_all(listeners: Iterable[Listener], within_seconds: float = CLOSING_SECONDS) -> None:
    """Let each finish what it has begun, all at the same time; one that fails or hangs is left behind."""
    closing = {
        asyncio.ensure_future(listener.close()): listener
        for listener in dict.fromkeys(listeners)
        if isinstance(listener, Closable)
    }
    if not closing:
        return
    done, late = await asyncio.wait(closing, timeout=within_seconds)
    for task in late:
        task.cancel()
        log.warning(
            "%s was not done %g s after the run and is left.",
            describe_listener(closing[task]),
            within_seconds,
        )
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning(
                "closing %s failed: %s: %s", describe_listener(closing[task]), type(error).__name__, error
            )


def describe_listener(listener: Listener) -> str:
    return f"listener {type(listener).__name__}"
