"""Values that are only ever stored sealed, with a key that is not in the database.

A sealed value is bound to its purpose, so that it cannot be moved from one row to another:

    vault.open(vault.seal(b"hunter2", "secret:sec-1"), "secret:sec-1")

Knows nothing of rows.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from proctor.errors import ConfigError
from proctor.server.problems import ApiError
from proctor.support.write_once import write_once

KEY_FILE = "secret.key"
KEY_FILE_VARIABLE = "PROCTOR_SECRET_KEY_FILE"
KEY_BYTES = 32
NONCE_BYTES = 12
AES_GCM = b"\x01"
"""The first byte: how the rest is sealed."""


class UnreadableError(ApiError):
    """A value that this server's key does not open."""

    status, code = 500, "secret_unreadable"


class Vault:
    """Seals and opens values with one key."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def seal(self, value: bytes, meant_for: str) -> bytes:
        nonce = secrets.token_bytes(NONCE_BYTES)
        return AES_GCM + nonce + self._cipher.encrypt(nonce, value, meant_for.encode())

    def open(self, sealed: bytes, meant_for: str) -> bytes:
        version, nonce, rest = sealed[:1], sealed[1 : 1 + NONCE_BYTES], sealed[1 + NONCE_BYTES :]
        try:
            if version != AES_GCM or len(nonce) != NONCE_BYTES:
                raise InvalidTag
            return self._cipher.decrypt(nonce, rest, meant_for.encode())
        except InvalidTag:
            raise UnreadableError(
                f"{meant_for!r} was not sealed with this server's key; "
                f"put the right {KEY_FILE} back, or set the value again."
            ) from None


def open_vault(
    data: Path, environ: Mapping[str, str], may_create: Callable[[], bool] = lambda: True
) -> Vault:
    """A server's vault: its key is in the data folder, created at the first start, or in the file that a
    variable names. A key is created only if it `may_create` one."""
    named = environ.get(KEY_FILE_VARIABLE)
    file = key_file(data, environ)
    try:
        if not named and not file.exists():
            if not may_create():
                raise ConfigError(
                    f"The key {file} is missing, but the database has secrets that it sealed: put it back, "
                    f"or name it with {KEY_FILE_VARIABLE}; if it is lost, start once with --forget-secrets, "
                    f"which deletes them."
                )
            write_once(file, new_key)
        return Vault(read_key(file))
    except OSError as error:
        hint = f"; {KEY_FILE_VARIABLE} names it" if named else ""
        raise ConfigError(f"Cannot read the key {file}: {error.strerror}{hint}.") from error


def key_file(data: Path, environ: Mapping[str, str]) -> Path:
    named = environ.get(KEY_FILE_VARIABLE)
    return Path(named) if named else data / KEY_FILE


def new_key() -> bytes:
    return base64.b64encode(secrets.token_bytes(KEY_BYTES)) + b"\n"


def read_key(file: Path) -> bytes:
    try:
        key = base64.b64decode(file.read_bytes().strip(), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(
            f"{file} does not hold a key of {KEY_BYTES} bytes in base64; restore it from a backup."
        )
    return key
