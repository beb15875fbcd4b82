"""Mark methods of an environment as stop conditions, cleanup or teardown.

    @stop                       asked after the model's turn; true ends the rollout, under the method's name
    @cleanup(priority=10)       called when a rollout ends, however it ended
    @teardown                   called once, when the run ends

Higher priority goes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])

MARK = "_proctor_hook"


class _Hook:
    def __init__(self, kind: str) -> None:
        self.kind = kind

    @overload
    def __call__(self, method: F) -> F: ...
    @overload
    def __call__(self, *, priority: int = 0) -> Callable[[F], F]: ...
    def __call__(self, method: Any = None, *, priority: int = 0) -> Any:
        def mark(method: F) -> F:
            setattr(method, MARK, (self.kind, priority))
            return method

        return mark if method is None else mark(method)


stop = _Hook("stop")
cleanup = _Hook("cleanup")
teardown = _Hook("teardown")


def hooks_of(owner: object, kind: str) -> list[Callable[..., Any]]:
    """The owner's bound methods with this mark, highest priority first."""
    found: list[tuple[int, int, Callable[..., Any]]] = []
    names = [name for base in reversed(type(owner).__mro__) for name in vars(base)]
    for order, name in enumerate(dict.fromkeys(names)):
        mark = getattr(getattr(type(owner), name, None), MARK, None)
        if mark is not None and mark[0] == kind:
            found.append((-mark[1], order, getattr(owner, name)))
    return [method for _, _, method in sorted(found, key=lambda entry: entry[:2])]
