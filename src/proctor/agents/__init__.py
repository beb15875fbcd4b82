"""Agents: what works on the tasks of environments that do not own their turns.

`create_agent` can be imported from here too, and is loaded when it is first named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proctor.agents.resolve import create_agent as create_agent


def __getattr__(name: str) -> Any:
    if name != "create_agent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from proctor.agents.resolve import create_agent

    return create_agent
