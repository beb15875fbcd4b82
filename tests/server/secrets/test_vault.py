"""What is sealed stays sealed, and a key that is wrong or lost is told in one sentence."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from msgspec.structs import replace

from proctor.errors import ConfigError
from proctor.server.platform import Platform
from proctor.server.secrets.vault import KEY_BYTES, UnreadableError, Vault, open_vault
from proctor.server.settings import Settings
from tests.server.serving import Served, settings_in


def test_what_was_sealed_is_opened_again(tmp_path: Path) -> None:
    sealed = open_vault(tmp_path, {}).seal(b"hunter2", "secret:1")
    assert b"hunter2" not in sealed
    assert open_vault(tmp_path, {}).open(sealed, "secret:1") == b"hunter2"


def test_a_sealed_value_is_of_no_use_in_another_row(tmp_path: Path) -> None:
    vault = open_vault(tmp_path, {})
    with pytest.raises(UnreadableError, match="not sealed with this server's key"):
        vault.open(vault.seal(b"hunter2", "secret:1"), "secret:2")


@pytest.mark.parametrize("damaged", [b"", b"\x01", b"\x02" + bytes(40), b"\x01" + bytes(40)])
def test_a_damaged_value_is_told_as_one(tmp_path: Path, damaged: bytes) -> None:
    with pytest.raises(UnreadableError):
        open_vault(tmp_path, {}).open(damaged, "secret:1")


def test_the_key_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    open_vault(tmp_path, {})
    file = tmp_path / "secret.key"
    made = file.read_bytes()
    open_vault(tmp_path, {})
    assert file.read_bytes() == made
    assert file.stat().st_mode & 0o077 == 0
    assert list(tmp_path.iterdir()) == [file]


def test_the_key_may_be_elsewhere(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(base64.b64encode(bytes(KEY_BYTES)))
    vault = open_vault(tmp_path, {"PROCTOR_SECRET_KEY_FILE": str(elsewhere)})
    assert Vault(bytes(KEY_BYTES)).open(vault.seal(b"x", "y"), "y") == b"x"
    assert not (tmp_path / "secret.key").exists()


def test_a_named_key_that_is_not_there_is_not_made_up(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere: .*PROCTOR_SECRET_KEY_FILE names it"):
        open_vault(tmp_path, {"PROCTOR_SECRET_KEY_FILE": str(tmp_path / "nowhere")})


def test_a_file_that_holds_no_key_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret.key").write_text("swordfish")
    with pytest.raises(ConfigError, match=r"secret\.key does not hold a key"):
        open_vault(tmp_path, {})


def start_and_end(settings: Settings) -> None:
    platform = Platform(settings)
    platform.database.close()
    platform.data_lock.close()


def test_a_server_whose_key_is_lost_does_not_start_until_told_to_forget(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    start_and_end(settings)
    (settings.data / "secret.key").unlink()
    with pytest.raises(ConfigError, match="is missing, but the database has secrets"):
        Platform(settings)
    assert not (settings.data / "secret.key").exists()
    start_and_end(replace(settings, forget_secrets=True))
    start_and_end(settings)


def test_a_start_that_is_refused_writes_no_key(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, database="postgresql://ada@127.0.0.1:1/none")
    with pytest.raises(ConfigError, match="Cannot use the database"):
        Platform(settings)
    assert not list(settings.data.glob("secret.key*"))


def test_answers_that_are_kept_to_be_given_again_hold_no_token_in_clear(served: Served) -> None:
    key = {"Idempotency-Key": "k"}
    made = served.root("POST", "/tokens", {"name": "laptop"}, headers=key)
    again = served.root("POST", "/tokens", {"name": "laptop"}, headers=key)
    assert again.body == made.body
    secret = made.body["secret"].split("_", 2)[2].encode()
    assert not any(secret in path.read_bytes() for path in served.platform.data.glob("proctor.db*"))
