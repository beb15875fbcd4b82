"""Images inside the messages of a rollout: found, described and decoded, never fetched.

Knows the shapes that models' APIs give them. Knows nothing of rollouts or HTTP.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from proctor.api.rollout_view import ImagePart

SHOWN_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"})
"""What browsers show as pictures and nothing else: an SVG is a document."""
LONGEST_URL = 2_000


class MessageImage(msgspec.Struct, frozen=True):
    """An image that is in a message, or elsewhere."""

    media_type: str = ""
    data: str = ""
    """Base64."""
    url: str = ""
    """Where it is if it is elsewhere."""

    def brief(self, part: int) -> ImagePart:
        size = len(self.data) * 3 // 4
        return ImagePart(media_type=self.media_type, size=size, part=part, url=self.url[:LONGEST_URL])


class ImageData(msgspec.Struct, frozen=True):
    media_type: str
    data: bytes


def find_images(message: Any) -> Iterator[MessageImage]:
    """The images of one message, in its order."""
    content = message.get("content") if isinstance(message, dict) else None
    for part in content if isinstance(content, list) else ():
        image = read_image(part) if isinstance(part, dict) else None
        if image is not None:
            yield image


def read_image(part: Mapping[str, Any]) -> MessageImage | None:
    """The image in a part of a message, in the shape of OpenAI or Anthropic."""
    kind = part.get("type")
    if kind in ("image_url", "input_image"):
        held = part.get("image_url")
        url = held.get("url") if isinstance(held, dict) else held
        return split_url(url) if isinstance(url, str) else None
    source = part.get("source") if kind == "image" else None
    if not isinstance(source, dict):
        return None
    data, url, media_type = source.get("data"), source.get("url"), source.get("media_type")
    if isinstance(data, str):
        return MessageImage(media_type if isinstance(media_type, str) else "", data)
    return split_url(url) if isinstance(url, str) else None


def split_url(url: str) -> MessageImage:
    head, comma, data = url.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return MessageImage(head.removeprefix("data:").partition(";")[0].lower(), data)
    return MessageImage(url=url)


def decode_image(image: MessageImage) -> ImageData | None:
    """The bytes of an image that is in its message and can be shown as a picture."""
    if image.media_type not in SHOWN_TYPES:
        return None
    try:
        return ImageData(image.media_type, base64.b64decode(image.data, validate=True))
    except (binascii.Error, ValueError):
        return None
