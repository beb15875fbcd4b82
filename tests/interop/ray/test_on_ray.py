"""One run on two machines: what is played, what dies and is survived, what is refused."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Callable

import pytest

from tests.interop.ray.conftest import RayCluster
from tests.interop.ray.machines import PROCTOR, Machine, note
from tests.waiting import wait_for

pytestmark = pytest.mark.interop

WORKERS = ("--on", "ray", "-w", "2", "-c", "8")
LONG = ("-n", "120", "-r", "1", "-a", '{"tasks": 120, "seconds": 0.5}')
"""About eight seconds on two workers."""
NOISE = re.compile(r"raylet|gcs|\bray::|E \d+ \d+\]|W \d+ \d+\]|INFO worker|Traceback|WARNING worker\.py")


def test_environment_arguments_and_files_reach_nodes_with_disks_of_their_own(cluster: RayCluster) -> None:
    arguments = json.dumps({"tasks": 24, "seconds": 0.1, "file": "said.txt"})

    ran = cluster.play(*WORKERS, "-n", "24", "-r", "1", "-a", arguments, "-C", "words").finish()

    ran.check_whole(24)
    assert ran.nodes == {False, True}
    assert {tuple(row["words"]) for row in ran.rows} == {("from the run's disk", "as an argument")}
    assert NOISE.search(ran.stderr) is None, ran.stderr
    assert not (cluster.second._own / "home" / "lab").exists(), "it lies in the cache only"


def kill_worker(machine: Machine) -> None:
    for pid in machine.workers():
        os.kill(pid, signal.SIGKILL)


def kill_actor(machine: Machine) -> None:
    for pid in machine.actors():
        os.kill(pid, signal.SIGKILL)


def kill_node(machine: Machine) -> None:
    machine.kill_everything()


@pytest.mark.parametrize("kill", [kill_worker, kill_actor, kill_node])
def test_whatever_is_killed_each_rollout_is_played_to_its_end_once(
    cluster: RayCluster, kill: Callable[[Machine], None]
) -> None:
    playing = cluster.play(*WORKERS, *LONG)
    playing.wait_for_rows(20)

    kill(cluster.second)
    killed_at = time.monotonic()
    wait_for(lambda: "played again by others" in playing.read_log(), 20, "the loss is noticed")
    note(f"{kill.__name__}: noticed after {time.monotonic() - killed_at:.1f} s")
    ran = playing.finish()

    ran.check_whole(120)
    assert any(row.get("earlier_attempts") for row in ran.rows)
    assert NOISE.search(ran.stderr) is None, ran.stderr


def test_a_cut_link_is_noticed_within_20_seconds_and_the_far_side_falls_silent(cluster: RayCluster) -> None:
    playing = cluster.play(*WORKERS, "-n", "400", "-r", "1", "-a", '{"tasks": 400, "seconds": 0.5}')
    playing.wait_for_rows(20)

    cluster.second.cut()
    cut_at = time.monotonic()
    try:
        wait_for(lambda: "is out of reach" in playing.read_log(), 20, "the cut is noticed")
        note(f"cut: noticed after {time.monotonic() - cut_at:.1f} s")
        wait_for(lambda: not cluster.second.workers(), 30 - (time.monotonic() - cut_at), "the far side ends")
        note(f"cut: far side silent after {time.monotonic() - cut_at:.1f} s")
        ran = playing.finish()
    finally:
        cluster.second.mend()
        cluster.second.kill_everything()  # Ray gives up a node that was away

    ran.check_whole(400)


def test_with_rays_control_plane_cut_the_conversation_goes_on(cluster: RayCluster) -> None:
    playing = cluster.play(*WORKERS, *LONG)
    playing.wait_for_rows(20)
    [control] = cluster.first.find("gcs_server")

    os.kill(control, signal.SIGSTOP)
    try:
        playing.wait_for_rows(115)
    finally:
        os.kill(control, signal.SIGCONT)
    ran = playing.finish()

    ran.check_whole(120)
    assert not any(row.get("earlier_attempts") for row in ran.rows)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 5), (signal.SIGKILL, -9)]
)
def test_a_run_that_is_ended_leaves_nothing_on_the_nodes(
    cluster: RayCluster, number: signal.Signals, code: int
) -> None:
    playing = cluster.play(*WORKERS, *LONG)
    playing.wait_for_rows(10)

    playing.process.send_signal(number)
    ran = playing.finish(30)

    assert ran.code == code, ran.stderr
    keys = [(row["example_id"], row["rollout"]) for row in ran.rows]
    assert len(set(keys)) == len(keys) >= 10
    assert NOISE.search(ran.stderr) is None, ran.stderr
    machines = (cluster.first, cluster.second)
    ended_at = time.monotonic()
    wait_for(lambda: not any(m.workers() or m.actors() for m in machines), 5, "the end of every worker")
    took = time.monotonic() - ended_at
    note(f"{number.name}: clean after {took:.1f} s")


def test_an_interrupted_run_is_resumed_at_another_place(cluster: RayCluster) -> None:
    playing = cluster.play(*WORKERS, *LONG)
    playing.wait_for_rows(10)
    playing.process.send_signal(signal.SIGINT)
    playing.finish(30)
    [results] = playing.folder.rglob("results.jsonl")
    folder = str(results.parent).replace(str(cluster.first._own), str(cluster.first.disk))

    again = cluster.first.do(
        *(PROCTOR, "eval", "run", "lab/played.py", "-m", "m", "-k", "", "-b", cluster.url, "-s"),
        *(*LONG, "-c", "120", "-w", "2", "--resume", folder, "--json"),
    )

    assert again.returncode == 0, again.stderr
    keys = [json.loads(line)["example_id"] for line in results.read_text().splitlines()]
    assert sorted(set(keys)) == list(range(120))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--on", "ray://10.99.7.1:6399"), "No Ray cluster answers at ray://10.99.7.1:6399"),
        (("--on", "ray://10.99.7.77"), "No Ray cluster answers at ray://10.99.7.77:6379"),
        (("--on", "ray", "--on-args", '{"cpus": 7}'), "is large enough for a worker with 7 CPUs"),
        (("--on", "ray", "--on-args", '{"resources": {"moon": 1}}'), "for a worker with 1 CPU, 1 moon"),
        (("--on", "ray", "--on-args", '{"listen": "10.0.0.1"}'), "Cannot listen for workers at 10.0.0.1"),
    ],
)
def test_what_cannot_work_is_refused_in_one_sentence(
    cluster: RayCluster, words: tuple[str, ...], sentence: str
) -> None:
    ran = cluster.play("-w", "1", *words).finish(30)

    assert ran.code == 2, ran.stderr
    assert sentence in ran.stderr
    assert NOISE.search(ran.stderr) is None, ran.stderr
    assert ran.seconds < 15


def test_ctrl_c_is_obeyed_while_a_cluster_without_room_is_waited_for(cluster: RayCluster) -> None:
    playing = cluster.play("-w", "1", "--on", "ray", "--on-args", '{"cpus": 7, "room_seconds": 60}')
    wait_for(lambda: cluster.first.find("proctor.cluster.driver"), 15, "the driver")
    time.sleep(2)

    playing.process.send_signal(signal.SIGINT)
    ran = playing.finish(5)

    assert ran.code == 130, ran.stderr
    wait_for(lambda: not cluster.first.find("proctor.cluster.driver"), 5, "nothing is left")


def test_a_cluster_that_wants_another_token_says_so(cluster: RayCluster) -> None:
    token = cluster.first._own / "home" / "token"
    token.write_text("a" * 64)
    wanted = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(cluster.first.disk / "home" / "token")}
    cluster.second.kill_everything()
    second = cluster.second
    (second._own / "home" / "token").write_text("a" * 64)
    second.start_head(wanted)
    try:
        begun = time.monotonic()
        status = (PROCTOR, "cluster", "status", "--on", f"ray://{second.address}")
        ran = second.do(*status, environ={"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": "b" * 64})
        seconds = time.monotonic() - begun
        allowed = second.do(*status, environ=wanted)
    finally:
        second.kill_everything()

    assert ran.returncode == 2
    assert "wants another token" in ran.stderr
    assert len(ran.stderr.strip().splitlines()) == 1
    assert seconds < 15
    assert allowed.returncode == 0, allowed.stderr


def test_a_node_with_another_proctor_is_named(cluster: RayCluster) -> None:
    stand_in = cluster.second._own / "home" / "other"
    description = stand_in / "proctor-9.9.dist-info"
    description.mkdir(parents=True)
    (description / "METADATA").write_text("Metadata-Version: 2.1\nName: proctor\nVersion: 9.9\n")
    (stand_in / "proctor").mkdir()
    (stand_in / "proctor" / "__init__.py").write_text("__version__ = '9.9'")
    cluster.second.kill_everything()
    there = str(cluster.second.home / "other")
    cluster.second.join(cluster.first, {"PYTHONPATH": there})
    try:
        wait_for(lambda: cluster.count_nodes() == 2, 30, "two nodes")
        ran = cluster.first.do(PROCTOR, "cluster", "check", "--json")
    finally:
        cluster.second.kill_everything()

    found = json.loads(ran.stdout)["nodes"]
    reports = {report["node"]["host"]: report for report in found if report["probe"]}
    assert reports[cluster.first.address]["could_work"]
    assert reports[cluster.second.address]["problems"] == ["Proctor is 9.9 there and 0.1.0 here"]
    assert ran.returncode == 1


def test_a_node_that_joins_later_is_used(cluster: RayCluster) -> None:
    cluster.second.kill_everything()
    wait_for(lambda: cluster.count_nodes() == 1, 60, "one node")
    playing = cluster.play(*WORKERS, "-n", "500", "-r", "1", "-a", '{"tasks": 500, "seconds": 0.5}')
    playing.wait_for_rows(5)

    cluster.second.join(cluster.first)
    ran = playing.finish()

    ran.check_whole(500)
    assert ran.nodes == {False, True}


def test_strangers_disturb_nothing(cluster: RayCluster) -> None:
    playing = cluster.play(*WORKERS, *LONG)
    playing.wait_for_rows(5)
    ports = listening_ports(cluster.first, playing.process.pid)
    assert ports

    for _ in range(20):
        said = cluster.second.do(
            *("python3", "-c"),
            f"import socket; s = socket.create_connection(('{cluster.first.address}', {ports[0]}), 5); "
            "s.sendall(b'\\x80\\x04K\\x01.' * 100); print(s.recv(100))",
        )
        assert b"proctor!" not in said.stdout.encode()
    ran = playing.finish()

    ran.check_whole(120)
    assert not any(row.get("earlier_attempts") for row in ran.rows)


def listening_ports(machine: Machine, pid: int) -> list[int]:
    listed = machine.do("ss", "-ltnpH").stdout
    return [int(line.split()[3].rpartition(":")[2]) for line in listed.splitlines() if f"pid={pid}," in line]
