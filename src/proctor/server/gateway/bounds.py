"""The most that a request can cost, before it is sent.

A token of text is at least one byte in every tokenizer, so a prompt has no more tokens than bytes. Parts
other than text are bounded by their kind. An answer has no more tokens than the request allows; a request
without a limit is given one, so that the bound holds. Knows nothing of accounts.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from proctor.config.prices import Price
from proctor.server.gateway.parameters import kind_of, parts_in
from proctor.trace import Usage
from proctor.wires.content import Part
from proctor.wires.errors import malformed_error

MILLION = 1_000_000
TEMPLATE_TOKENS = 1_000
"""Tokens that a provider adds to a prompt: the chat template, and how to use tools."""
IMAGE_TOKENS = 16_384
"""The most tokens that a model with a dynamic resolution uses for one image."""
COSTLY_IMAGE_TOKENS = {"gpt-4o-mini": 50_000}
"""Models that bill an image as many more tokens, so that it costs as much as with their larger siblings."""
DOCUMENT_TOKENS = 1_000_000
"""Of a file, audio or video: the gateway cannot count its pages, and no model reads more."""
MOST_ANSWERS = 128
LONGEST_ANSWER = 10_000_000
"""More tokens than any model writes; a larger limit is a mistake."""
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
"""The parameters that limit an answer, by the wire's path; a request without any is given the last."""


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
    """The most tokens of all answers to a request; adds a limit to a request that has none."""
    names = LIMITS[path]
    given = [whole(body, name, LONGEST_ANSWER) for name in names if body.get(name) is not None]
    if not given:
        # OpenAI's newer models refuse the older name; most other servers do not know the newer one.
        name = names[0] if "//api.openai.com" in url else names[-1]
        body[name] = default
        given = [default]
    answers = whole(body, "n", MOST_ANSWERS) if body.get("n") is not None else 1
    return answers * (max(given) + thinking_beside(body))


def thinking_beside(body: Part) -> int:
    """Tokens for thinking that some servers allow in addition to the limit of the answer."""
    reasoning = body.get("reasoning")
    budgets = (body.get("thinking_budget"), reasoning.get("max_tokens") if isinstance(reasoning, dict) else 0)
    return sum(each for each in budgets if isinstance(each, int) and 0 < each <= LONGEST_ANSWER)


def whole(body: Part, name: str, most: int) -> int:
    value = body[name]
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise malformed_error(f"{name} must be a whole number from 1 to {most:,}.")
    return value


def prompt_bound(body: Part, size: int, model: str) -> int:
    """The most tokens in the prompt of a request of this many bytes."""
    tokens = size + TEMPLATE_TOKENS
    each_image = next((most for name, most in COSTLY_IMAGE_TOKENS.items() if name in model), IMAGE_TOKENS)
    for part in parts_in(body):
        if is_document(part):
            tokens += DOCUMENT_TOKENS - encoded_bytes(part)
        elif kind_of(part) in KINDS_OF_IMAGES:
            tokens += each_image - encoded_bytes(part)
    return tokens


def is_document(part: Part) -> bool:
    """A file, audio or video, even if it claims to be an image."""
    kind = kind_of(part)
    if kind in KINDS_OF_IMAGES:
        image = part.get("image_url")
        url = image.get("url") if isinstance(image, dict) else image
        return isinstance(url, str) and url.startswith("data:") and not url.startswith("data:image/")
    return kind in KINDS_OF_DOCUMENTS and kind_of(part.get("source")) not in ("text", "content")


def encoded_bytes(part: Part) -> int:
    """How many bytes of a part are an encoded file rather than text."""
    inner = (part, *(value for value in part.values() if isinstance(value, dict)))
    return sum(len(text) for each in inner for text in each.values() if is_data(each, text))


def is_data(holder: Part, value: Any) -> bool:
    if not isinstance(value, str):
        return False
    return value.startswith("data:") or value is holder.get("data") or value is holder.get("file_data")
