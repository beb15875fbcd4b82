"""The Gemini API as a stream, `streamGenerateContent`: read piece by piece. Knows nothing of HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from proctor.trace import Piece
from proctor.wires.codec import encode_json, event_data

_decode_event = msgspec.json.Decoder(dict[str, Any]).decode


class GeminiAssembler:
    """Puts a provider's stream together again, as the reply it would have sent without one."""

    def __init__(self) -> None:
        self.is_whole = False
        self._body: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []

    def feed(self, event: bytes) -> Sequence[Piece]:
        data = event_data(event)
        if not data:
            return ()
        read = _decode_event(data)
        candidates = read.pop("candidates", None)
        self._body.update(read)
        self.is_whole = self.is_whole or "error" in read or "promptFeedback" in read
        if not isinstance(candidates, list) or not candidates or not isinstance(candidates[0], dict):
            return ()
        candidate = dict(candidates[0])
        content = candidate.pop("content", None) or {}
        self._candidate.update(candidate)
        self.is_whole = self.is_whole or bool(candidate.get("finishReason"))
        return [piece for part in content.get("parts") or () for piece in self._add(part)]

    def whole(self) -> bytes:
        if self._candidate or self._parts:
            whole = {**self._candidate, "content": {"role": "model", "parts": self._parts}}
            return encode_json({**self._body, "candidates": [whole]})
        return encode_json(self._body)

    def _add(self, part: dict[str, Any]) -> Sequence[Piece]:
        text, is_thought = part.get("text"), bool(part.get("thought"))
        last = self._parts[-1] if self._parts else None
        if last is not None and is_plain(part) and is_plain(last) and bool(last.get("thought")) is is_thought:
            last["text"] += text
        else:
            self._parts.append(dict(part))
        return [Piece("thought" if is_thought else "text", text)] if isinstance(text, str) and text else ()


def is_plain(part: dict[str, Any]) -> bool:
    """Whether a part is text alone; one with a signature must stay as it came."""
    return isinstance(part.get("text"), str) and part.keys() <= {"text", "thought"}
