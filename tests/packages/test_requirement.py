"""What a project is told to require is written into its files: a server cannot add a line to it."""

from __future__ import annotations

import pytest

from proctor.api.hub import Check, Version
from proctor.errors import ConfigError
from proctor.packages.requirement import pip_requirement


def version_with(sha256: str) -> Version:
    return Version(
        id="ver-1",
        version="1.0",
        content_hash="0" * 64,
        wheel_name="greet-1.0-py3-none-any.whl",
        wheel_sha256=sha256,
        wheel_size=1,
        source_sha256="0" * 64,
        source_size=1,
        requires_python="",
        dependencies=[],
        secrets=[],
        pushed_by="ada",
        created_at=0.0,
        check=Check(status="passed"),
    )


def test_a_requirement_is_one_line_with_the_hash_of_the_wheel() -> None:
    line = pip_requirement("https://hub.example/", "ada", "greet", version_with("a" * 64))
    address = "https://hub.example/simple/ada/greet/greet-1.0-py3-none-any.whl"
    assert line == f"greet @ {address}#sha256={'a' * 64}"


@pytest.mark.parametrize("sha256", ["", "A" * 64, "0\n--extra-index-url https://x.example", "a" * 64 + "\n"])
def test_a_hash_that_is_none_is_not_written_down(sha256: str) -> None:
    with pytest.raises(ConfigError, match="SHA-256"):
        pip_requirement("https://hub.example", "ada", "greet", version_with(sha256))
