"""A push is whole, checked and for good, whatever is sent."""

from __future__ import annotations

import asyncio
import random
import stat
import tarfile
import zipfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from proctor.api.hub import PushForm
from proctor.client import hub
from proctor.client.connection import ServerConnection, ServerError
from proctor.client.contexts import Context
from proctor.server.hub.sources import read_path
from tests.server.hub.packages import (
    Made,
    add_to_tar,
    add_to_zip,
    made,
    push,
    write_wheel,
)
from tests.server.serving import Served, serving, settings_in

Harm = Callable[[Path], None]


def stored(served: Served) -> list[Path]:
    return [path for path in (served.platform.data / "blobs").rglob("*") if path.is_file()]


def test_what_was_pushed_is_there_and_waits_for_its_check(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    package = made(
        tmp_path,
        project='[tool.proctor]\nsecrets = ["JUDGE_KEY"]\ntags = ["greeting"]\n',
        needs="proctor>=0.1",
    )

    pushed = push(ada, package)

    assert (pushed.status, pushed.body["created"]) == (201, True)
    told = ada.get("/environments/ada/greet")
    assert (told["visibility"], told["description"], told["tags"]) == ("private", "Says hello.", ["greeting"])
    version = told["latest"]
    assert (version["version"], version["pushed_by"], version["secrets"]) == ("0.1.0", "ada", ["JUDGE_KEY"])
    assert version["dependencies"] == ["proctor>=0.1"]
    assert version["content_hash"] == package.content_hash
    assert version["check"]["status"] == "pending"


def test_the_same_again_changes_nothing_and_other_content_is_refused(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    first = push(ada, made(tmp_path / "one"))
    before = len(stored(served))

    again = push(ada, made(tmp_path / "two"))
    other = push(ada, made(tmp_path / "three", module="changed = True\n"))

    assert again.body["created"] is False
    assert again.body["version"] == first.body["version"]
    assert (other.status, other.code) == (409, "version_exists")
    assert len(stored(served)) == before  # nothing of what was refused is kept


def test_a_push_that_is_sent_again_with_its_key_is_answered_as_the_first(
    served: Served, tmp_path: Path
) -> None:
    ada = served.user("ada")
    package = made(tmp_path)

    first, again = push(ada, package, key="k"), push(ada, package, key="k")

    assert again.body == first.body
    assert again.body["created"] is True


def test_of_pushes_at_the_same_moment_one_makes_it(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    package = made(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: push(ada, package), range(8)))

    assert sorted(answer.body["created"] for answer in answers) == [False] * 7 + [True]
    assert len(stored(served)) == 2


def test_how_a_wheel_was_packed_makes_no_other_content(served: Served, tmp_path: Path) -> None:
    def repacked(path: Path) -> None:
        with zipfile.ZipFile(path) as old:
            files = {info.filename: old.read(info) for info in old.infolist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as new:
            for name in sorted(files):
                new.writestr(zipfile.ZipInfo(name, (2001, 1, 1, 0, 0, 0)), files[name])

    ada = served.user("ada")
    push(ada, made(tmp_path / "one"))

    assert push(ada, made(tmp_path / "two", wheel=repacked)).body["created"] is False


def test_another_content_hash_than_the_servers_is_refused(served: Served, tmp_path: Path) -> None:
    answer = push(served.user("ada"), made(tmp_path)._replace(content_hash="f" * 64))

    assert (answer.status, answer.code) == (422, "content_mismatch")
    assert stored(served) == []


@pytest.mark.parametrize(
    "harm",
    [
        add_to_zip("../outside.py"),
        add_to_zip("/etc/outside.py"),
        add_to_zip("a/../../outside.py"),
        add_to_zip("a\\..\\..\\outside.py"),
        add_to_zip("C:/outside.py"),
        add_to_zip("link", b"/etc/passwd", stat.S_IFLNK | 0o777),
        add_to_zip("pipe", b"", stat.S_IFIFO | 0o644),
        add_to_zip("bomb.bin", bytes(80 * 2**20)),
        add_to_zip("GREET.PY"),
        add_to_zip("greet.py/inside.py"),
        add_to_zip("unlisted.py"),
        add_to_zip("other-1.0.dist-info/METADATA"),
        lambda path: path.write_bytes(b"no zip at all"),
        lambda path: path.write_bytes(path.read_bytes()[:-30]),
        lambda path: write_wheel(path, "greet", "0.1.0", {"greet.py": b""}, said_name="other"),
        lambda path: write_wheel(path, "greet", "0.1.0", {"greet.py": b""}, said_version="0.2.0"),
        lambda path: write_wheel(path, "greet", "0.2.0", {"greet.py": b""}),
        lambda path: write_wheel(
            path,
            "greet",
            "0.1.0",
            {"greet.py": b""},
            record="greet.py,sha256=AAAA,0\ngreet-0.1.0.dist-info/METADATA,,\n"
            "greet-0.1.0.dist-info/WHEEL,,\ngreet-0.1.0.dist-info/RECORD,,\n",
        ),
    ],
)
def test_a_wheel_made_to_do_harm_is_refused_and_leaves_nothing(
    served: Served, tmp_path: Path, harm: Harm
) -> None:
    ada = served.user("ada")

    answer = push(ada, made(tmp_path, wheel=harm))

    assert (answer.status, answer.code) == (422, "bad_wheel"), answer.body
    assert stored(served) == []
    assert ada.get("/environments")["items"] == []


@pytest.mark.parametrize(
    "harm",
    [
        add_to_tar("../outside.py"),
        add_to_tar("/etc/outside.py"),
        add_to_tar("link", tarfile.SYMTYPE, "/etc/passwd"),
        add_to_tar("link", tarfile.LNKTYPE, "greet.py"),
        add_to_tar("device", tarfile.CHRTYPE),
        add_to_tar("pipe", tarfile.FIFOTYPE),
        add_to_tar("bomb.bin", size=80 * 2**20),
        add_to_tar("greet.py"),
        lambda path: path.write_bytes(b"no archive at all"),
        lambda path: path.write_bytes(path.read_bytes()[:-20]),
    ],
)
def test_a_source_made_to_do_harm_is_refused_and_leaves_nothing(
    served: Served, tmp_path: Path, harm: Harm
) -> None:
    answer = push(served.user("ada"), made(tmp_path, source=harm))

    assert (answer.status, answer.code) == (422, "bad_source"), answer.body
    assert stored(served) == []


@pytest.mark.parametrize(
    ("project", "reason"),
    [
        ('[tool.proctor]\nsecrets = ["not a name"]\n', "no such name"),
        ("[tool.proctor]\nsecrets = 3\n", "should be a list"),
        ("[tool.proctor\n", "cannot be read"),
    ],
)
def test_a_project_file_that_makes_no_sense_is_refused_in_a_sentence(
    served: Served, tmp_path: Path, project: str, reason: str
) -> None:
    answer = push(served.user("ada"), made(tmp_path, project=project))

    assert answer.code == "bad_source"
    assert reason in answer.body["message"]


def test_more_than_the_server_takes_is_refused(tmp_path: Path) -> None:
    with serving(settings_in(tmp_path, largest_push=1000)) as served:
        answer = push(served.user("ada"), made(tmp_path, more={"data.bin": random.Random(1).randbytes(9000)}))

        assert (answer.status, answer.code) == (413, "too_large")
        assert stored(served) == []


def test_a_body_that_breaks_off_leaves_nothing(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    boundary = {"content-type": "multipart/form-data; boundary=b"}
    head = b'--b\r\ncontent-disposition: form-data; name="form"\r\n\r\n'

    for body in (b"", b"nothing of the kind", head, head + b'{"content_hash": "x"}\r\n--b--\r\n'):
        assert ada("POST", "/environments", data=body, headers=boundary).status == 422
    assert ada("POST", "/environments", {}).status == 422
    assert stored(served) == []


def test_who_may_not_push_is_told_before_the_files_are_sent(served: Served, tmp_path: Path) -> None:
    served.user("ada")
    package = made(tmp_path)
    wheel = tmp_path / package.wheel_name
    wheel.write_bytes(bytes(20 * 2**20))

    async def push_to_ada() -> None:
        context = Context(url=served.url, token=served.user("bob").token)
        async with ServerConnection(context, tries=1) as server:
            await hub.push(server, PushForm(owner="ada", content_hash="x"), wheel, wheel)

    with pytest.raises(ServerError, match="You cannot push to 'ada'"):
        asyncio.run(push_to_ada())


def test_a_name_that_cannot_stand_in_an_address_is_refused(served: Served, tmp_path: Path) -> None:
    answer = push(served.user("ada"), made(tmp_path, name="g" * 40))

    assert (answer.status, answer.code) == (422, "invalid")


def test_what_is_told_comes_from_the_newest_version_not_the_last_push(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    for version in ("0.2.0", "0.1.1", "0.3.0rc1"):
        push(ada, made(tmp_path / version, version=version))

    assert ada.get("/environments/ada/greet")["latest"]["version"] == "0.2.0"
    listed = [each["version"] for each in ada.get("/environments/ada/greet/versions")["items"]]
    assert listed == ["0.2.0", "0.1.1", "0.3.0rc1"]


def test_a_version_is_found_by_number_and_by_the_beginning_of_its_hash(
    served: Served, tmp_path: Path
) -> None:
    ada = served.user("ada")
    package = made(tmp_path)
    push(ada, package)

    for wanted in ("0.1.0", "0.1", "latest", package.content_hash[:8]):
        assert ada.get(f"/environments/ada/greet/versions/{wanted}")["version"] == "0.1.0"
    missing = ada("GET", "/environments/ada/greet/versions/0.1.1")
    assert missing.body["message"] == "ada/greet has no version '0.1.1'; did you mean '0.1.0'?"


def test_files_are_read_without_a_download(served: Served, tmp_path: Path) -> None:
    ada = served.user("ada")
    more = {"data/a.txt": "ä".encode() * 10, "data/deep/b.bin": b"\0\1"}
    push(ada, made(tmp_path, more=more))
    files = "/environments/ada/greet/versions/latest/files"

    top = [entry["path"] for entry in ada.get(files)["entries"]]
    assert top == ["data/", "greet.py", "pyproject.toml"]
    assert ada.get(f"{files}?path=data")["entries"] == [
        {"path": "data/a.txt", "size": 20},
        {"path": "data/deep/", "size": 2},
    ]
    cut = ada.get(f"{files}?path=data/a.txt&max_bytes=5")
    assert (cut["text"], cut["truncated"], cut["size"]) == ("ää", True, 20)
    assert ada.get(f"{files}?path=data/deep/b.bin")["text"] is None
    for path in ("nothing", "../../proctor.db", "/etc/passwd"):
        assert ada("GET", f"{files}?path={path}").status == 404


def test_looking_into_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="There is no file or folder 'x'"):
        read_path(tmp_path, [["a", 1]], "x", 10)


def test_deleting_a_version_frees_its_files_but_not_those_of_a_fork(served: Served, tmp_path: Path) -> None:
    ada, bob = served.user("ada"), served.user("bob")
    push(ada, made(tmp_path), visibility="public")
    forked = bob.post("/environments/ada/greet/fork")
    assert (forked["owner"], forked["forked_from"], forked["visibility"]) == (
        "bob",
        "ada/greet@0.1.0",
        "private",
    )
    assert bob("POST", "/environments/ada/greet/fork", {}).code == "name_taken"

    ada.ok("DELETE", "/environments/ada/greet/versions/0.1.0")
    assert len(stored(served)) == 2
    assert ada.get("/environments/ada/greet")["latest"] is None
    assert bob.get("/environments/bob/greet/versions/latest/files?path=greet.py")["text"]

    bob.ok("DELETE", "/environments/bob/greet")
    assert stored(served) == []


def test_a_push_by_hand_needs_its_parts_in_order(served: Served, tmp_path: Path) -> None:
    package: Made = made(tmp_path)
    nameless = package._replace(wheel_name="greet.zip")
    assert push(served.user("ada"), nameless).code == "bad_wheel"


# What takes longer to read than to send


DOTS = ".".join("a" * 4_000)
LINES = "".join(f"{number:x}=1\n" for number in range(20_000))
PARTS = "".join(
    f'Content-Type: multipart/mixed; boundary="{number}"\n\n--{number}\n' for number in range(900)
)


@pytest.mark.parametrize(
    "fields",
    [
        "".join(f"x{number:x}:\n" for number in range(20_000)),
        "\r".join(f"x{number:x}:" for number in range(20_000)) + "\n",
        PARTS,
        PARTS.lower().replace("content-type:", "content-type\t:"),
    ],
    ids=["fields", "other-line-ends", "nested-parts", "nested-parts-in-disguise"],
)
def test_metadata_that_would_take_minutes_to_read_is_refused_at_once(
    served: Served, tmp_path: Path, fields: str
) -> None:
    def harm(path: Path) -> None:
        write_wheel(path, "greet", "0.1.0", {"greet.py": b""}, said_version=f"0.1.0\n{fields.rstrip()}")

    answer = push(served.user("ada"), made(tmp_path, wheel=harm))

    assert (answer.status, answer.code) == (422, "bad_wheel"), answer.body


@pytest.mark.parametrize(
    "project",
    [
        f"[{DOTS}]\n{LINES}",
        f'[ "=" . {DOTS} ]\n{LINES}',
        f'["\u2028=".{DOTS}]\n{LINES}',
        f"[[{DOTS}]]\n{LINES}",
        f'"=".{DOTS} = 1\n',
        "# honest words\n" * 20_000,
        f"x = {'9' * 5_000}\n",
        f"requires-python = 0x{'f' * 5_000}\n",
    ],
    ids=["table", "quoted", "other-line-end", "array", "key", "large", "number", "shown-number"],
)
def test_a_project_file_that_would_take_minutes_to_read_is_refused_at_once(
    served: Served, tmp_path: Path, project: str
) -> None:
    answer = push(served.user("ada"), made(tmp_path, project=project))

    assert (answer.status, answer.code) == (422, "bad_source"), answer.body
