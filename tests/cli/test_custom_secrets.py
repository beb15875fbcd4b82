"""`--custom-secrets`: from variables, files and JSON; no message repeats a value."""

from __future__ import annotations

from pathlib import Path

import pytest

from proctor.cli.commands.custom_secrets import read_custom_secrets
from proctor.errors import ConfigError

VALUE = "sk-swordfish"


def test_names_are_looked_up_among_ones_own_variables() -> None:
    assert read_custom_secrets("KEY, OTHER", {"KEY": "1", "OTHER": "2", "MORE": "3"}) == {
        "KEY": "1",
        "OTHER": "2",
    }


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(ConfigError, match=r"names KEI, which is not set; did you mean 'KEY'\?"):
        read_custom_secrets("KEI", {"KEY": VALUE})
    with pytest.raises(ConfigError, match="names NOTHING, which is not set; set it, or name a file"):
        read_custom_secrets("NOTHING", {"KEY": VALUE})


def test_a_file_of_lines_is_read_as_shells_write_it(tmp_path: Path) -> None:
    file = tmp_path / "secrets.env"
    file.write_text("# mine\nexport KEY='a b'\n\nOTHER=x=y \nTHIRD=\"q\"\n")
    assert read_custom_secrets(f"@{file}", {}) == {"KEY": "a b", "OTHER": "x=y", "THIRD": "q"}


def test_a_file_of_json_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "secrets.json"
    file.write_text('{"KEY": "a"}')
    assert read_custom_secrets(f"@{file}", {}) == {"KEY": "a"}
    assert capsys.readouterr().err == ""


def test_json_that_is_typed_works_and_warns(capsys: pytest.CaptureFixture[str]) -> None:
    assert read_custom_secrets('{"KEY": "sk-swordfish"}', {}) == {"KEY": VALUE}
    warned = capsys.readouterr().err
    assert "other processes can see them" in warned
    assert VALUE not in warned


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ('{"key": "sk-swordfish"}', "'key' cannot be the name of a secret"),
        ('{"PATH": "sk-swordfish"}', "'PATH' would change how the run itself works"),
        ('{"KEY": 5}', "The value of KEY in --custom-secrets is not a string"),
        ('{"KEY": "sk-swordfish', "--custom-secrets is not valid JSON"),
        ("{}", "names no secret"),
        ("", "names no secret"),
        ("@nowhere.env", "nowhere.env cannot be read: No such file"),
    ],
)
def test_what_cannot_be_is_named_without_its_value(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        read_custom_secrets(word, {})
    assert VALUE not in str(error.value)


def test_a_line_that_sets_nothing_is_told_by_its_number(tmp_path: Path) -> None:
    file = tmp_path / "x.env"
    file.write_text("KEY=1\nsk-swordfish\n")
    with pytest.raises(ConfigError, match=r"Line 2 of .*x\.env is not NAME=VALUE") as error:
        read_custom_secrets(f"@{file}", {})
    assert VALUE not in str(error.value)
