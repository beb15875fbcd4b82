"""Sandboxes of a run, over the real API, behind real walls."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace
from sqlalchemy import delete

from proctor.api.runs import Cause
from proctor.isolation.limits import find_parent_cgroups
from proctor.server.db.database import Database, sqlite_url
from proctor.server.db.tables import runs
from proctor.server.platform import Platform
from tests.ports import free_port
from tests.server.sandboxes.playing import Run, a_run
from tests.server.serving import Answer, Api, Served, root_token, serving, settings_in
from tests.waiting import SECONDS, wait_for

GROUPED = {name for place in find_parent_cgroups() for name in place.controllers}

MEGABYTE = 2**20


def box_of(run: Api) -> str:
    made = run.post("/sandboxes", {})
    assert made["status"] == "ready", made
    return str(made["id"])


def said(run: Api, box: str, command: Any, **more: Any) -> dict[str, Any]:
    answer: dict[str, Any] = run.post(f"/sandboxes/{box}/exec", {"command": command, **more})
    return answer


def read(run: Api, box: str, path: str) -> Answer:
    return run("GET", f"/sandboxes/{box}/files/{path}")


def write(run: Api, box: str, path: str, data: bytes) -> Answer:
    return run("PUT", f"/sandboxes/{box}/files/{path}", data=data)


def processes_with(word: str) -> list[str]:
    """Command lines on this machine in which a word stands."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = place.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if word in line and str(os.getpid()) != place.parent.name:
            found.append(line)
    return found


# Variables are a run's own words


TAKEN = b"#!/bin/bash\necho taken by $UID\n"


def test_variables_choose_no_program_that_is_run_before_the_command(run: Run) -> None:
    box = box_of(run)
    for name in ("sh", "setpriv", "prlimit"):
        write(run, box, f"bin/{name}", TAKEN)
    said(run, box, "chmod 755 bin/*")

    ran = said(run, box, ["/usr/bin/id", "-u"], variables={"PATH": "/workspace/bin"})

    assert ran["code"] == 0
    assert int(ran["output"]) != 0


def test_variables_steer_the_loader_of_the_command_only(run: Run) -> None:
    box = box_of(run)

    ran = said(run, box, ["/usr/bin/id", "-u"], variables={"LD_DEBUG": "files"})

    started = [line.split()[-1] for line in ran["output"].splitlines() if "initialize program:" in line]
    assert started in (["/usr/bin/id"], [])  # none where the C library does not tell


def test_any_variable_reaches_the_command_and_nothing_but_those(run: Run) -> None:
    box = box_of(run)
    variables = {
        "QUOTED": "a 'b' \"c\" $HOME `id`\n\\",
        "EMPTY": "",
        "HOME": "/tmp",
        "number": "5",
        "IFS": "x",
    }

    ran = said(run, box, ["/usr/bin/env", "-0"], variables=variables)

    seen = dict(each.split("=", 1) for each in ran["output"].split("\0") if each)
    assert {name: seen.get(name) for name in variables} == variables
    assert set(seen) - set(variables) <= {"PATH", "LANG", "TERM", "PWD", "OLDPWD", "SHLVL", "_"}


# What an environment does there


def test_a_command_sees_the_files_that_were_written_and_leaves_its_own(run: Run) -> None:
    box = box_of(run)
    write(run, box, "src/a.txt", b"pear")

    ran = said(run, box, "cat src/a.txt; echo plum > b.txt")

    assert ran == {"code": 0, "output": "pear"}
    assert read(run, box, "b.txt").body == "plum\n"


def test_words_input_and_variables_reach_the_command_as_they_are(run: Run) -> None:
    box = box_of(run)
    ran = said(
        run, box, ["sh", "-c", 'cat; echo "$1-$FRUIT"', "sh", "a b"], stdin="in ", variables={"FRUIT": "fig"}
    )
    assert ran["output"] == "in a b-fig\n"


def test_a_command_that_takes_too_long_is_ended_and_said_to_be(run: Run) -> None:
    assert said(run, box_of(run), "sleep 60", timeout_seconds=0.3)["code"] is None


def test_a_command_that_is_asked_for_again_with_its_key_is_not_run_again(run: Run) -> None:
    box = box_of(run)
    asked = {"command": "echo x >> log; wc -l < log"}
    first = run.ok("POST", f"/sandboxes/{box}/exec", asked, {"Idempotency-Key": "k"})
    again = run.ok("POST", f"/sandboxes/{box}/exec", asked, {"Idempotency-Key": "k"})
    assert first == again
    assert said(run, box, "wc -l < log")["output"].strip() == "1"


def test_a_sandbox_that_is_asked_for_again_with_its_key_is_the_same_even_when_it_has_ended(run: Run) -> None:
    first = run.ok("POST", "/sandboxes", {}, {"Idempotency-Key": "box"})
    again = run.ok("POST", "/sandboxes", {}, {"Idempotency-Key": "box"})
    assert first["id"] == again["id"]
    run.ok("DELETE", f"/sandboxes/{first['id']}")
    assert run.ok("POST", "/sandboxes", {}, {"Idempotency-Key": "box"})["status"] == "ended"


def test_a_file_that_is_not_there_or_is_none_is_told_apart(run: Run) -> None:
    box = box_of(run)
    said(run, box, "mkdir folder; mkfifo pipe; touch empty")
    assert read(run, box, "nothing").code == "no_such_file"
    assert read(run, box, "folder").code == "invalid"
    assert read(run, box, "pipe").code == "invalid"
    assert write(run, box, "folder", b"x").code == "invalid"
    assert (read(run, box, "empty").status, read(run, box, "empty").body) == (200, "")


def test_sandboxes_are_listed_for_their_run_and_for_admins(shared: Served, run: Run) -> None:
    box, other = box_of(run), box_of(run)
    page = run.get("/sandboxes?limit=1")
    rest = run.get(f"/sandboxes?limit=1&cursor={page['next_cursor']}")
    assert [each["id"] for each in (*page["items"], *rest["items"])] == [other, box]
    assert {box, other} <= {each["id"] for each in shared.root.get("/sandboxes")["items"]}


# Who may


def test_a_run_that_was_not_granted_it_is_told_the_flag_and_so_is_whoever_looks_at_it(
    shared: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, Cause]] = []

    async def hear(run_id: str, cause: Cause) -> None:
        told.append((run_id, cause))

    monkeypatch.setattr(shared.platform.runs, "note", hear)
    poor = a_run(shared)
    program = {"command": ["true"], "port": 80}
    for what, body, flag in (
        ("sandboxes", {}, "--allow-sandbox-access"),
        ("instances", program, "--allow-instances-access"),
    ):
        answer = poor("POST", f"/{what}", body)
        assert (answer.status, answer.code) == (403, "missing_permission")
        assert flag in answer.body["message"]
        assert told[-1][0] == poor.id
        assert told[-1][1].code == "missing_permission"
        assert flag in told[-1][1].next_step


def test_users_have_no_sandboxes_and_learn_nothing_of_those_of_runs(shared: Served, run: Run) -> None:
    box, ada = box_of(run), shared.user("ada")
    assert ada("POST", "/sandboxes", {}).status == 403
    assert ada("GET", "/sandboxes").status == 403
    assert shared.nobody("GET", f"/sandboxes/{box}").status == 401
    assert shared.root("POST", f"/sandboxes/{box}/exec", {"command": "true"}).status == 403


def test_a_run_does_not_find_the_sandbox_of_another(shared: Served, run: Run) -> None:
    box, other = box_of(run), a_run(shared, sandboxes=True)
    assert other("GET", f"/sandboxes/{box}").status == 404
    assert other("POST", f"/sandboxes/{box}/exec", {"command": "true"}).status == 404
    assert read(other, box, "a").status == 404
    assert write(other, box, "a", b"x").status == 404
    assert other("DELETE", f"/sandboxes/{box}").status == 404
    assert other.get("/sandboxes")["items"] == []
    assert run.get(f"/sandboxes/{box}")["status"] == "ready"


def test_an_admin_ends_what_a_run_has(shared: Served, run: Run) -> None:
    box = box_of(run)
    shared.root.ok("DELETE", f"/sandboxes/{box}")
    assert run("POST", f"/sandboxes/{box}/exec", {"command": "true"}).code == "place_not_ready"


# Attacks


@pytest.mark.parametrize("path", ["../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd", "a/../../b", "%00"])
def test_a_path_that_leads_out_is_refused_to_read_and_to_write(run: Run, path: str) -> None:
    box = box_of(run)
    assert read(run, box, path).status in (404, 422)
    assert write(run, box, path, b"x").status in (404, 405, 422)


def test_an_absolute_path_is_taken_as_one_below_the_folder(run: Run) -> None:
    box = box_of(run)
    assert read(run, box, "/etc/passwd").code == "no_such_file"
    assert write(run, box, "%2Fetc/passwd", b"mine").status == 204
    assert said(run, box, "cat etc/passwd")["output"] == "mine"


def test_a_link_that_points_out_leads_to_what_is_inside_and_nowhere_else(run: Run, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the server")
    box = box_of(run)
    said(run, box, f"ln -s {secret} file; ln -s {tmp_path} folder; ln -s /etc/passwd users; ln -s / root")

    assert read(run, box, "file").status == 404
    assert read(run, box, "folder/secret").status == 404
    assert read(run, box, "users").body.startswith("agent:")
    assert write(run, box, "folder/new", b"x").status == 422
    assert write(run, box, "root/etc/passwd", b"x").status == 422
    write(run, box, "file", b"instead of the link")

    assert secret.read_text() == "of the server"
    assert not (tmp_path / "new").exists()
    assert read(run, box, "file").body == "instead of the link"


def test_an_oversized_file_is_refused_both_ways_and_leaves_nothing(run: Run) -> None:
    box = box_of(run)
    said(run, box, "head -c 1500000 /dev/zero > big")
    assert read(run, box, "big").status == 413
    assert write(run, box, "mine", b"x" * (MEGABYTE + 1)).status == 413
    assert said(run, box, "ls")["output"] == "big\n"


def test_a_sandbox_that_fills_the_disk_is_ended(shared: Served, run: Run) -> None:
    box = box_of(run)
    said(run, box, "for n in 1 2 3; do head -c 2000000 /dev/urandom > $n; done")
    shared.call(shared.platform.sandboxes.sweep)
    ended = run.get(f"/sandboxes/{box}")
    assert (ended["status"], "disk" in ended["message"]) == ("failed", True)


def test_nothing_is_left_of_a_fork_bomb_or_of_what_was_put_aside(run: Run) -> None:
    box, word = box_of(run), "31337.25"
    run.ok("POST", f"/sandboxes/{box}/exec", {"command": f"setsid sleep {word} & sleep 0.1"})
    said(run, box, f"bomb() {{ setsid sleep {word} & bomb & bomb; }}; bomb", timeout_seconds=1)
    run.ok("DELETE", f"/sandboxes/{box}")
    assert processes_with(f"sleep {word}") == []


def test_deleting_ends_a_command_that_runs(shared: Served, run: Run) -> None:
    box, word = box_of(run), "31338.5"
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(run, "POST", f"/sandboxes/{box}/exec", {"command": f"sleep {word}"})
        wait_for(lambda: bool(processes_with(f"sleep {word}")))
        run.ok("DELETE", f"/sandboxes/{box}")
        running.result(SECONDS)
    assert processes_with(f"sleep {word}") == []
    assert list((shared.platform.data / "places").iterdir()) == []


def test_there_is_no_network_and_no_view_of_the_server(shared: Served, run: Run) -> None:
    box = box_of(run)
    port = shared.platform.settings.port
    reach = f"python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 2)'"
    assert said(run, box, reach)["code"] not in (0, None)
    assert said(run, box, ["ls", str(shared.platform.data)])["code"] != 0
    seen = said(run, box, "env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'")["output"]
    assert run.token not in seen
    assert "PROCTOR" not in seen


# Limits


def test_a_run_has_only_so_many(run: Run) -> None:
    boxes = [box_of(run) for _ in range(3)]
    assert run("POST", "/sandboxes", {}).code == "too_many_places"
    run.ok("DELETE", f"/sandboxes/{boxes[0]}")
    box_of(run)


@pytest.mark.parametrize(
    "wish", [{"timeout_minutes": 61}, {"timeout_minutes": 0}, {"memory_mb": 513}, {"image": "debian"}]
)
def test_more_than_the_operator_allows_is_refused(run: Run, wish: dict[str, Any]) -> None:
    assert run("POST", "/sandboxes", wish).status == 422


def test_memory_is_limited(run: Run) -> None:
    box = box_of(run)
    assert said(run, box, ["python3", "-c", "x = bytearray(600 * 2**20)"])["code"] in (1, 137)


@pytest.mark.skipif("memory" not in GROUPED, reason="no control group can be made here")
def test_memory_is_limited_for_all_that_runs_in_a_sandbox_together(run: Run) -> None:
    eater = "python3 -c \"x = bytes(300 * 2**20); x += b'.'; import time; time.sleep(3)\""
    box = box_of(run)

    told = said(
        run, box, ["sh", "-c", f"{eater} & first=$!; {eater} || echo ended; wait $first || echo ended"]
    )

    assert told["output"].split().count("ended") >= 1


def test_places_end_with_their_run(shared: Served, run: Run) -> None:
    box = box_of(run)
    run.ends()
    shared.call(shared.platform.sandboxes.sweep)
    shown = shared.root.get(f"/sandboxes/{box}")
    assert (shown["status"], shown["message"]) == ("ended", "Its run is over.")


def test_places_end_when_their_run_is_started_anew(shared: Served, run: Run) -> None:
    box = box_of(run)
    run.change(attempt=1)
    shared.call(shared.platform.sandboxes.sweep)
    assert shared.root.get(f"/sandboxes/{box}")["status"] == "ended"


def test_no_place_is_there_for_longer_than_its_run_may_take(shared: Served) -> None:
    end = time.time() + 5
    run = a_run(shared, sandboxes=True, deadline_at=end)
    assert run.post("/sandboxes", {})["expires_at"] == end
    shared.call(shared.platform.sandboxes.reap, run.id)


def test_a_place_ends_when_its_time_is_up(shared: Served) -> None:
    run = a_run(shared, sandboxes=True, deadline_at=time.time() - 1)
    box = run.post("/sandboxes", {})["id"]
    shared.call(shared.platform.sandboxes.sweep)
    assert run.get(f"/sandboxes/{box}")["message"] == "Its time was up."


def test_a_server_that_starts_again_has_ended_everything(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    with serving(settings) as first:
        run = a_run(first, sandboxes=True)
        box = box_of(run)
        left = first.platform.data / "places"
        assert any(left.iterdir())
    with serving(settings) as second:
        shown = second.root.get(f"/sandboxes/{box}")
        assert (shown["status"], shown["message"]) == ("ended", "The server was restarted.")
        assert not left.exists() or not any(left.iterdir())


KILLED = """
import sys
from pathlib import Path
from proctor.server.server import create_http_server, open_server
from proctor.server.settings import Settings
settings = Settings(data=Path(sys.argv[1]), port=int(sys.argv[2]), runs_at_once=0)
create_http_server(open_server(settings).platform).run()
"""


def test_nothing_is_left_of_a_server_that_was_killed(tmp_path: Path) -> None:
    settings = replace(settings_in(tmp_path), port=free_port())
    words = [sys.executable, "-c", KILLED, str(settings.data), str(settings.port)]
    word = "31339.75"
    with subprocess.Popen(words) as first, ThreadPoolExecutor(1) as pool:
        try:
            wait_for(lambda: (settings.data / "admin-token").exists())
            wait_for(lambda: is_up(Api(settings.url)))
            root = Api(settings.url, root_token(settings.url, settings.data))
            beside = SimpleNamespace(database=Database(sqlite_url(settings.data / "proctor.db")))
            run = a_run(Served(settings.url, cast("Platform", beside), root), sandboxes=True)
            box = box_of(run)
            running = pool.submit(run, "POST", f"/sandboxes/{box}/exec", {"command": f"sleep {word}"})
            wait_for(lambda: bool(processes_with(f"sleep {word}")))
        finally:
            first.send_signal(signal.SIGKILL)
        assert running.exception(SECONDS) is not None
    with serving(settings) as second:
        assert processes_with(f"sleep {word}") == []
        assert second.root.get(f"/sandboxes/{box}")["status"] == "ended"
        assert not (settings.data / "places").exists()


def test_places_of_a_run_that_is_deleted_end(shared: Served, run: Run) -> None:
    box_of(run)
    gone = delete(runs).where(runs.c.id == run.id)
    shared.platform.database.write_now(lambda connection: connection.execute(gone))
    shared.call(shared.platform.sandboxes.sweep)
    assert [*(shared.platform.data / "places").iterdir()] == []


def is_up(root: Api) -> bool:
    try:
        return root("GET", "/health").status == 200
    except OSError:
        return False
