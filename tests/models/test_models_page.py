"""What `docs/models.md` promises: every client type is on it, and its provider works as printed."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from proctor import plugins

if TYPE_CHECKING:
    from tests.conftest import Provider, Ran

    Serve = Callable[..., Provider]
    Eval = Callable[[Provider], Ran]

PAGE = (Path(__file__).parents[2] / "docs" / "models.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    [text] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return str(text)


def installed(folder: Path) -> str:
    """Put the page's provider where a package installer would; returns the path for Python to look in."""
    entry_points = tomllib.loads(block("toml"))["project"]["entry-points"]["proctor.models"]
    about = folder / "acme-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "acme.py").write_text(block("python"), encoding="utf-8")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n", encoding="utf-8")
    lines = [f"{name} = {target}" for name, target in entry_points.items()]
    (about / "entry_points.txt").write_text("\n".join(["[proctor.models]", *lines]), encoding="utf-8")
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture
def eval_as_printed(tmp_path: Path, proctor: Callable[..., Ran]) -> Eval:
    """Runs the page's command, at another address."""
    path = installed(tmp_path / "site")
    [line] = re.findall(r"^proctor (eval run echo .*)$", PAGE, re.MULTILINE)

    def run(server: Provider) -> Ran:
        words = line.replace("http://localhost:8000", server.url).split()
        return proctor(*words, "--json", "-s", "-T", "0.5", environ={"PYTHONPATH": path})

    return run


def test_every_client_type_is_on_the_page() -> None:
    listed = re.findall(r"^\| `(\w+)`", PAGE, re.MULTILINE)

    assert set(plugins.list_names(plugins.MODELS)) <= set(listed)


def test_the_provider_on_the_page_answers(provider: Serve, eval_as_printed: Eval) -> None:
    server = provider({"body": {"said": "say 0", "words": 2}})

    ran = eval_as_printed(server)

    assert ran.code == 0, ran.stderr
    assert ran.rows[0]["reward"] == 1.0
    assert ran.rows[0]["token_usage"]["output_tokens"] == 2
    [request] = server.requests
    assert request.path == "/v1/say"
    assert request.body == {"model": "parrot", "ask": "say 0", "temperature": 0.5}


def test_the_provider_on_the_page_fails_as_all_of_them_do(provider: Serve, eval_as_printed: Eval) -> None:
    ran = eval_as_printed(provider({"body": {"mumbled": "mm"}}))

    assert ran.code == 1, ran.stderr
    assert ran.rows[0]["outcome"] == "model_error"
    assert ran.rows[0]["error"]["error"] == "MalformedReplyError"
    assert "did not answer with a readable reply" in ran.rows[0]["error"]["message"]
