"""What opens a repository, and what signs its webhooks: sealed together. Knows nothing of git."""

from __future__ import annotations

import base64
import hmac

import msgspec

from proctor.server.secrets.vault import Vault

ANY_USER = "x-access-token"
"""Servers that only look at the token take any name."""


class SourceCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """The secrets of a source."""

    username: str = ""
    token: str = ""
    key: str = ""
    webhook_secret: str = ""

    @property
    def header(self) -> str:
        """The Authorization header for https; empty without a token."""
        if not self.token:
            return ""
        pair = f"{self.username or ANY_USER}:{self.token}"
        return f"Basic {base64.b64encode(pair.encode()).decode()}"

    def signs(self, body: bytes, signature: str, plain: str) -> bool:
        """Whether a webhook is signed, as GitHub and Gitea do, or carries the secret, as GitLab does."""
        digest = hmac.new(self.webhook_secret.encode(), body, "sha256").hexdigest()
        is_signed = hmac.compare_digest(signature.removeprefix("sha256=").encode(), digest.encode())
        return is_signed or hmac.compare_digest(plain.encode(), self.webhook_secret.encode())


def source_sealing_context(source_id: str) -> str:
    return f"source:{source_id}"


def seal_credentials(vault: Vault, source_id: str, credentials: SourceCredentials) -> bytes:
    return vault.seal(msgspec.json.encode(credentials), source_sealing_context(source_id))


def open_credentials(vault: Vault, source_id: str, sealed: bytes) -> SourceCredentials:
    return msgspec.json.decode(vault.open(sealed, source_sealing_context(source_id)), type=SourceCredentials)
