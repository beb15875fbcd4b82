"""The hub as pip and uv see it: the real ones, from the loopback address."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import Connection

from proctor.server.hub import index
from tests.server.hub.packages import MODULE, made, push, write_wheel
from tests.server.serving import Api, Served

JSON = {"accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.01"}


@pytest.fixture
def ada(served: Served, tmp_path: Path) -> Api:
    api = served.user("ada")
    for version in ("0.1.0", "0.2.0"):
        push(api, made(tmp_path / version, name="say-hello", version=version), visibility="public")
    push(api, made(tmp_path / "own", name="own-thing"))
    return api


def index_of(served: Served, token: str = "") -> str:
    credentials = f"__token__:{token}@" if token else ""
    return served.url.replace("http://", f"http://{credentials}") + "/simple/ada/"


def installed(folder: Path, index: str, requirement: str) -> subprocess.CompletedProcess[str]:
    """As pip does it, with the address in a variable and nothing else configured."""
    quiet = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    return subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-input", "--target", folder, requirement],
        env={**quiet, "PIP_INDEX_URL": index, "PIP_CONFIG_FILE": os.devnull, "PIP_NO_CACHE_DIR": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_pip_installs_what_is_public_without_a_token(served: Served, ada: Api, tmp_path: Path) -> None:
    newest = installed(tmp_path / "new", index_of(served), "Say_Hello")
    pinned = installed(tmp_path / "old", index_of(served), "say-hello==0.1.0")

    assert newest.returncode == 0, newest.stderr
    assert (tmp_path / "new/say_hello-0.2.0.dist-info").is_dir()
    assert (tmp_path / "new/say_hello.py").is_file()
    assert pinned.returncode == 0, pinned.stderr
    assert (tmp_path / "old/say_hello-0.1.0.dist-info").is_dir()


def test_pip_installs_what_is_private_only_with_a_token_of_who_may(
    served: Served, ada: Api, tmp_path: Path
) -> None:
    bob = served.user("bob")

    mine = installed(tmp_path / "a", index_of(served, ada.token), "own-thing")
    theirs = installed(tmp_path / "b", index_of(served, bob.token), "own-thing")
    nobodys = installed(tmp_path / "c", index_of(served), "own-thing")

    assert mine.returncode == 0, mine.stderr
    assert (tmp_path / "a/own_thing.py").is_file()
    assert (theirs.returncode, nobodys.returncode) == (1, 1)
    assert not any(secret in mine.stdout + mine.stderr for secret in (ada.token, bob.token))


@pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not installed")
def test_uv_installs_too(served: Served, ada: Api, tmp_path: Path) -> None:
    words = ["uv", "pip", "install", "--no-deps", "--no-config", "--target", str(tmp_path / "x"), "own-thing"]
    environ = {**os.environ, "UV_DEFAULT_INDEX": index_of(served, ada.token), "UV_NO_CACHE": "1"}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr


def test_who_shows_no_token_is_asked_for_one_and_others_find_nothing(served: Served, ada: Api) -> None:
    bob = served.user("bob")
    for path in ("/simple/ada/own-thing/", "/simple/ada/nothing/", "/simple/nobody/"):
        asked = served.nobody("GET", path)
        assert (asked.status, asked.headers["www-authenticate"]) == (401, 'Basic realm="Proctor"')
        assert bob("GET", path).status == 404
    wheel = "/simple/ada/own-thing/own_thing-0.1.0-py3-none-any.whl"
    assert (served.nobody("GET", wheel).status, bob("GET", wheel).status) == (401, 404)
    assert ada("GET", wheel).status == 200


def test_a_namespace_lists_what_one_may_read(served: Served, ada: Api) -> None:
    assert names(ada, "/simple/ada/") == ["own-thing", "say-hello"]
    assert names(served.nobody, "/simple/ada/") == ["say-hello"]
    assert names(served.nobody, "/simple/") == ["ada/say-hello"]


def names(api: Api, path: str) -> list[str]:
    return [project["name"] for project in api("GET", path, headers=JSON).body["projects"]]


def test_the_json_tells_what_installers_need(served: Served, ada: Api) -> None:
    answer = served.nobody("GET", "/simple/ada/say-hello/", headers=JSON)

    assert answer.headers["content-type"] == "application/vnd.pypi.simple.v1+json"
    assert answer.body["meta"] == {"api-version": "1.1"}
    assert answer.body["versions"] == ["0.1.0", "0.2.0"]
    file = answer.body["files"][0]
    assert file["requires-python"] == ">=3.10"
    assert file["upload-time"].endswith("Z")
    assert str(file["size"]) == served.nobody("GET", file["url"]).headers["content-length"]
    assert served.nobody("GET", file["url"] + ".metadata").body.startswith("Metadata-Version: 2.1")


def test_the_page_carries_hashes_and_escapes_what_packages_say(served: Served, ada: Api) -> None:
    page = served.nobody("GET", "/simple/ada/say-hello/")

    assert page.headers["content-type"].startswith("text/html")
    assert 'data-requires-python="&gt;=3.10"' in page.body
    assert page.body.count("#sha256=") == 2
    assert page.body.count("data-core-metadata=") == 2


def test_the_index_is_told_without_reading_the_metadata_of_every_version(
    served: Served, ada: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = served.nobody("GET", "/simple/ada/say-hello", headers=JSON).body["files"]
    read: list[str] = []

    def metadata_of(_: Connection, version_id: str) -> str:
        read.append(version_id)
        return ""

    monkeypatch.setattr(index, "metadata_of", metadata_of)
    again = served.nobody("GET", "/simple/ada/say-hello", headers=JSON).body["files"]
    wheel = served.nobody("GET", first[0]["url"])

    assert again == first
    assert wheel.status == 200
    assert read == []


def test_metadata_that_would_make_the_index_long_to_tell_is_refused(served: Served, tmp_path: Path) -> None:
    def fatten(path: Path) -> None:
        write_wheel(path, "greet", "0.1.0", {"greet.py": MODULE.encode()}, readme="x" * 600_000)

    answer = push(served.user("ada"), made(tmp_path, wheel=fatten))
    assert answer.code == "bad_wheel"
    assert "METADATA" in answer.body["message"]
