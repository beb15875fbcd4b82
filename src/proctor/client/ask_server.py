"""Whether there is a server to ask about models. Most runs have none, and need not load the client."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from proctor.client.contexts import current_context
from proctor.config.endpoint_choice import AskServer, assume_offered


def build_ask_server(environ: Mapping[str, str]) -> AskServer:
    """What to ask the server in use, if there is one."""
    context = current_context(environ)
    if context is None or not context.token:
        return assume_offered
    from proctor.client.models import ask_for_model

    return partial(ask_for_model, context)
