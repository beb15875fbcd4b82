"""The most that a request can cost, before it is asked.

Of text a token is at least a byte, on every tokenizer, so a prompt has no more tokens than bytes. What is
not text is bounded by its kind. An answer has no more tokens than the request allows; where it says nothing,
a limit is put into it, so that the bound holds. Knows nothing of accounts.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from proctor.config.prices import Price
from proctor.gateway.wire import malformed_error
from proctor.server.gateway.parameters import Part, kind_of, parts_in
from proctor.trace import Usage

MILLION = 1_000_000
TEMPLATE_TOKENS = 1_000
"""What a provider adds to a prompt: the frame of a conversation, and how tools are used."""
IMAGE_TOKENS = 16_384
"""The most that a model with a dynamic resolution makes of one picture."""
COSTLY_IMAGE_TOKENS = {"gpt-4o-mini": 50_000}
"""Models that are billed for a picture as for many more tokens, so that it costs as much as elsewhere."""
DOCUMENT_TOKENS = 1_000_000
"""Of a file, sound or film: its pages cannot be counted here, and no model reads more."""
MOST_ANSWERS = 128
LONGEST_ANSWER = 10_000_000
"""More tokens than any model writes; a larger number is a mistake."""
KINDS_OF_IMAGES = ("image_url", "image", "input_image", "computer_screenshot")
KINDS_OF_DOCUMENTS = (
    "document",
    "file",
    "input_file",
    "input_audio",
    "audio_url",
    "video_url",
    "input_video",
    "video",
)
LIMITS = {
    "/chat/completions": ("max_completion_tokens", "max_tokens"),
    "/responses": ("max_output_tokens",),
    "/messages": ("max_tokens",),
}
"""What limits an answer, by the path of a wire; the last one is put in where none is there."""


class Bound(msgspec.Struct, frozen=True):
    """Tokens that a request cannot exceed."""

    prompt: int
    answer: int

    def cost(self, price: Price) -> int:
        """In millionths of a dollar, rounded up."""
        read = max(price.input, price.cached or 0.0)
        return math.ceil(self.prompt * read + self.answer * price.output)

    @property
    def usage(self) -> Usage:
        return Usage(self.prompt, self.answer)


def limit_answer(path: str, body: Part, default: int, url: str) -> int:
    """The most tokens of all answers to a request; puts a limit into a request that has none."""
    names = LIMITS[path]
    given = [whole(body, name, LONGEST_ANSWER) for name in names if body.get(name) is not None]
    if not given:
        # OpenAI's newer models refuse the older name, and most other servers do not know the newer one.
        name = names[0] if "//api.openai.com" in url else names[-1]
        body[name] = default
        given = [default]
    answers = whole(body, "n", MOST_ANSWERS) if body.get("n") is not None else 1
    return answers * (max(given) + thinking_beside(body))


def thinking_beside(body: Part) -> int:
    """What some servers let a model think beside the limit of its answer."""
    reasoning = body.get("reasoning")
    budgets = (body.get("thinking_budget"), reasoning.get("max_tokens") if isinstance(reasoning, dict) else 0)
    return sum(each for each in budgets if isinstance(each, int) and 0 < each <= LONGEST_ANSWER)


def whole(body: Part, name: str, most: int) -> int:
    value = body[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise malformed_error(f"{name} must be a whole number from 1 to {most:,}.")
    return value


def prompt_bound(body: Part, size: int, model: str) -> int:
    """The most tokens of a prompt whose request has so many bytes."""
    tokens = size + TEMPLATE_TOKENS
    each_image = next((most for name, most in COSTLY_IMAGE_TOKENS.items() if name in model), IMAGE_TOKENS)
    for part in parts_in(body):
        if is_document(part):
            tokens += DOCUMENT_TOKENS - encoded_bytes(part)
        elif kind_of(part) in KINDS_OF_IMAGES:
            tokens += each_image - encoded_bytes(part)
    return tokens


def is_document(part: Part) -> bool:
    """A file, sound or film, also one that calls itself an image."""
    kind = kind_of(part)
    if kind in KINDS_OF_IMAGES:
        shown = part.get("image_url")
        url = shown.get("url") if isinstance(shown, dict) else shown
        return isinstance(url, str) and url.startswith("data:") and not url.startswith("data:image/")
    return kind in KINDS_OF_DOCUMENTS and kind_of(part.get("source")) not in ("text", "content")


def encoded_bytes(part: Part) -> int:
    """How much of a part is not text but what a file looks like in JSON."""
    inner = (part, *(value for value in part.values() if isinstance(value, dict)))
    return sum(len(text) for each in inner for text in each.values() if is_data(each, text))


def is_data(holder: Part, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return value.startswith("data:") or value is holder.get("data") or value is holder.get("file_data")
