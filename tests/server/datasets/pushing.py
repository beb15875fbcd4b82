"""Pushes of datasets in tests."""

from __future__ import annotations

import hashlib
from urllib.parse import urlencode

from tests.server.serving import Answer, Api

ROWS = b'{"user_prompt": "1+1", "ground_truth": "2"}\n{"user_prompt": "2+2", "ground_truth": "4"}\n'
OTHER_ROWS = b'{"user_prompt": "3+3", "ground_truth": "6"}\n'


def sha256_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def push_rows(
    api: Api, owner: str, name: str, data: bytes, *, sha256: str | None = None, **query: object
) -> Answer:
    asked = urlencode({"format": "jsonl", **query})
    path = f"/datasets/{owner}/{name}/versions/{sha256 or sha256_of(data)}?{asked}"
    return api("PUT", path, data=data, headers={"content-type": "application/octet-stream"})
