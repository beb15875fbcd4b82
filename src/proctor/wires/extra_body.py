"""`extra_body` among sampling parameters, as OpenAI's clients take it. Knows nothing of any API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from proctor.errors import ConfigError

EXTRA_BODY = "extra_body"


def merge_extra_body(sampling: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with those in `extra_body` beside them, where a provider reads them; those win."""
    merged = dict(sampling)
    extra = merged.pop(EXTRA_BODY, None) or {}
    if not isinstance(extra, Mapping):
        raise ConfigError(f"{EXTRA_BODY} is {extra!r}; it must be an object of further parameters.")
    return {**merged, **extra}
