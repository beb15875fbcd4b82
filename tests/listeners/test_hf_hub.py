"""Results on the Hugging Face Hub: refused early, or pushed to a hub on this machine."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from proctor.config.schema import EvalConfig
from proctor.errors import ConfigError, StoreError
from proctor.listeners.hf_hub import MARK, check_hub, push, redact_metadata, render_card

HEADERS = {"X-Team": "swordfish"}


@dataclass
class Hub:
    """As much of a hub as a push needs."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    made: list[dict[str, Any]] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    pages: list[str] = field(default_factory=list)
    refuses: int = 0

    def commit(self, body: bytes) -> None:
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "header":
                self.commits.append(line["value"]["summary"])
            else:
                self.files[line["value"]["path"]] = base64.b64decode(line["value"]["content"])


def handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self, content: Any, status: int = 200, headers: Mapping[str, str] = {}) -> None:
            body = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in {"content-length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            if hub.refuses:
                self.answer({"error": "the hub is on fire"}, hub.refuses)
            elif self.path == "/api/repos/create":
                hub.made.append(json.loads(body))
                self.answer({"url": f"{hub.url}/datasets/me/evals"})
            elif self.path == "/api/validate-yaml":
                hub.pages.append(json.loads(body)["content"])
                self.answer({"errors": [], "warnings": []})
            elif "/preupload/" in self.path:
                asked = json.loads(body)["files"]
                modes = [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in asked]
                self.answer({"files": modes})
            elif "/commit/" in self.path:
                hub.commit(body)
                self.answer({"commitUrl": f"{hub.url}/datasets/me/evals/commit/1", "commitOid": "1" * 40})
            else:
                self.answer({}, 404)

        def do_GET(self) -> None:
            name = self.path.partition("/resolve/main/")[2]
            if self.path == "/api/whoami-v2":
                known = self.headers.get("authorization") == "Bearer good"
                self.answer(
                    {"name": "me"} if known else {"error": "Invalid username or password."},
                    200 if known else 401,
                )
            elif "/tree/" in self.path:
                self.answer([{"type": "file", "path": path, "size": 1, "oid": "0"} for path in hub.files])
            elif name in hub.files:
                self.answer(hub.files[name], headers={"etag": '"1"', "x-repo-commit": "1" * 40})
            elif name:
                self.answer(b"", 404, {"x-error-code": "EntryNotFound"})
            else:
                self.answer({"id": "me/evals", "sha": "1" * 40, "siblings": []})

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *words: object) -> None: ...

    return Handler


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub on this machine. The library reads its address once, when it is imported."""
    constants = pytest.importorskip(
        "huggingface_hub.constants", reason="the extra 'hf' is not installed, so nothing can be pushed"
    )
    kept = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler(kept))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", kept.url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", kept.url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
    monkeypatch.setenv("HF_TOKEN", "good")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    yield kept
    server.shutdown()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "proctor", "eval", "run", "echo", "-m", "scripted", "-n", "2", "-r", "1"),
            *("-o", str(tmp_path / "out"), "--header", "X-Team: swordfish", "--json"),
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(json.loads(ran.stdout)["folder"])


def config(**settings: Any) -> EvalConfig:
    return EvalConfig(
        env_id="echo", **{"save_to_hf_hub": True, "hf_hub_dataset_name": "me/evals", **settings}
    )


def test_nobody_who_does_not_push_is_asked_for_anything() -> None:
    check_hub(EvalConfig(env_id="echo", hf_hub_dataset_name="not a name"))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("evals", "-D is 'evals', and must look like owner/name"),
        ("me/evals/more", "must look like owner/name"),
    ],
)
def test_a_dataset_without_a_name_is_refused_before_anything_runs(name: str | None, sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_hub(config(hf_hub_dataset_name=name))


def test_a_dataset_is_named_after_the_environment_if_you_name_none(hub: Hub, folder: Path) -> None:
    unnamed = config(hf_hub_dataset_name=None)
    check_hub(unnamed)

    push(folder, unnamed)

    assert hub.made[0]["name"] == "proctor-echo"
    assert hub.made[0].get("organization") in (None, "me")


def test_without_the_extra_it_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)

    with pytest.raises(ConfigError, match=r"pip install 'proctor\[hf\]'"):
        check_hub(config())


def test_offline_is_refused(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    with pytest.raises(ConfigError, match="HF_HUB_OFFLINE is set; unset it"):
        check_hub(config())


def test_no_token_is_refused(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_TOKEN")

    with pytest.raises(ConfigError, match="set HF_TOKEN, or log in with hf auth login"):
        check_hub(config())


def test_a_token_that_is_not_taken_is_refused(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    check_hub(config())
    monkeypatch.setenv("HF_TOKEN", "bad")

    with pytest.raises(ConfigError, match="does not take the token"):
        check_hub(config())


def test_rows_metadata_and_a_card_are_pushed_to_a_private_dataset(hub: Hub, folder: Path) -> None:
    url = push(folder, config())

    assert url == f"{hub.url}/datasets/me/evals"
    assert hub.made[0].get("private") is True or hub.made[0].get("visibility") == "private"
    rows = next(name for name in hub.files if name.startswith("data/"))
    assert Path(rows).stem == folder.name
    assert hub.files[rows].startswith(b"PAR1" if rows.endswith(".parquet") else b"{")
    assert json.loads(hub.files[f"metadata/{folder.name}.json"])["run_id"] == folder.name
    assert f'config_name: "{folder.name}"\n  data_files: "{rows}"\n  default: true' in hub.pages[0]
    assert hub.files["README.md"].decode() == hub.pages[0], "the hub checks a card before it takes it"
    assert len(hub.commits) == 1


def test_the_values_of_headers_stay_at_home(hub: Hub, folder: Path) -> None:
    assert "swordfish" in (folder / "metadata.json").read_text()

    push(folder, config())

    assert not any(b"swordfish" in content for content in hub.files.values())
    assert b"X-Team" in hub.files[f"metadata/{folder.name}.json"]


def test_a_second_run_joins_the_first(hub: Hub, folder: Path) -> None:
    push(folder, config())
    other = folder.rename(folder.parent / "other")
    metadata = json.loads((other / "metadata.json").read_text())
    (other / "metadata.json").write_text(json.dumps({**metadata, "run_id": "other"}))
    push(other, config())

    assert len([name for name in hub.files if name.startswith("data/")]) == 2
    page = hub.files["README.md"].decode()
    assert page.count("config_name:") == 2
    assert page.count("default: true") == 1


def test_a_card_that_somebody_wrote_is_left_as_it_is(hub: Hub, folder: Path) -> None:
    hub.files["README.md"] = b"# my own words"

    push(folder, config())

    assert hub.files["README.md"] == b"# my own words"
    assert len(hub.files) == 3


def test_a_push_that_fails_says_where_the_results_are_and_what_to_do(hub: Hub, folder: Path) -> None:
    hub.refuses = 403

    with pytest.raises(StoreError) as told:
        push(folder, config())

    assert f"they are in {folder}" in str(told.value)
    assert f"hf upload me/evals {folder}/results.jsonl --repo-type dataset" in str(told.value)
    assert (folder / "results.jsonl").stat().st_size > 0


def test_a_run_whose_id_looks_like_a_number_is_still_a_name() -> None:
    files = ["data/12345678.parquet", "data/33e10480.jsonl", "elsewhere.txt"]

    page = render_card("me/evals", {"run_id": "33e10480", "env_id": "echo"}, files)

    head = page.split("---\n")[1]
    assert head.startswith(
        'configs:\n- config_name: "12345678"\n  data_files: "data/12345678.parquet"\n'
        '- config_name: "33e10480"\n  data_files: "data/33e10480.jsonl"\n  default: true\n'
    )
    assert MARK in page


def test_metadata_is_shared_without_the_values_of_headers() -> None:
    shared = redact_metadata({"run_id": "1", "config": {"headers": HEADERS, "model": "m"}})

    assert "swordfish" not in json.dumps(shared)
    assert shared["config"]["model"] == "m"
