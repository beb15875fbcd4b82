"""What bubblewrap is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from proctor.isolation.command_line import (
    CommandLimits,
    Cover,
    Forward,
    SandboxConfig,
    SandboxUser,
    build_bwrap_command,
    variable_arguments,
)
from proctor.isolation.hidden_paths import find_covers

WALLS = SandboxConfig(
    folder=Path("/made/folder"),
    etc=Path("/made/etc"),
    scratch=Path("/made/agent"),
    system={"/usr": None, "/bin": "usr/bin"},
)
ROOT = SandboxUser(70_000, 70_000, steps_down=True)


def told(command: tuple[str, ...] = ("true",), forwards: tuple[Forward, ...] = (), **walls: Any) -> str:
    words = build_bwrap_command(
        "bwrap",
        replace(WALLS, **walls),
        command,
        status=7,
        block=8,
        variables=9,
        keep_open=10,
        barrier=Path("/made/agent/gate"),
        forwards=forwards,
    )
    return f" {' '.join(words)} "


ALWAYS = [
    "--json-status-fd 7 --block-fd 8 --args 9 --sync-fd 10",
    "--ro-bind /made/agent/gate /run/proctor/gate",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--cap-drop ALL",
    "--die-with-parent",
    "--new-session",
    "--ro-bind /usr /usr",
    "--symlink usr/bin /bin",
    "--ro-bind /made/etc/passwd /etc/passwd",
    "--bind /made/agent/tmp /tmp",
    "--bind /made/folder /workspace --chdir /",
    "--remount-ro / --",
]


@pytest.mark.parametrize("words", ALWAYS)
@pytest.mark.parametrize("user", [SandboxUser(), ROOT], ids=["plain", "root"])
def test_every_sandbox_has_its_walls(words: str, user: SandboxUser) -> None:
    assert f" {words} " in told(user=user)


@pytest.mark.parametrize(
    ("walls", "there", "not_there"),
    [
        ({}, "--unshare-net", "/etc/resolv.conf"),
        ({"network": True}, "--ro-bind-try /etc/resolv.conf /etc/resolv.conf", "--unshare-net"),
        ({}, "--unshare-user --uid 1000 --gid 1000", "setpriv"),
        (
            {"user": ROOT},
            "/run/proctor/gate setpriv --reuid=70000 --regid=70000 --clear-groups",
            "--unshare-user",
        ),
        ({"user": ROOT}, "--bounding-set=-all --no-new-privs -- prlimit", "CAP_SYS_ADMIN"),
        (
            {"writable": {"/made/venv": "/opt/venv"}},
            "--dir /opt --bind /made/venv /opt/venv",
            "--ro-bind /made/venv",
        ),
        ({"user": ROOT, "nests": True}, "--cap-add CAP_SYS_ADMIN", "--unshare-user"),
        ({"nests": True}, "/run/proctor/gate prlimit", "CAP_SYS_ADMIN"),
        ({"limits": CommandLimits(cpu_seconds=3)}, "--cpu=3:4", "--as"),
        ({"mounts": ["/opt/tool"]}, "--ro-bind /opt/tool /opt/tool", "--bind /opt/tool"),
        (
            {"limits": CommandLimits(64, 10, 2)},
            "prlimit --core=0 --as=67108864 --nproc=10 --fsize=2097152 --",
            "--x",
        ),
        ({"limits": CommandLimits(None, None, None)}, "prlimit --core=0 -- sh -c", "--nproc"),
        ({"covers": [Cover("/usr/x")]}, "--tmpfs /usr/x --remount-ro /usr/x", "--bind /usr/x"),
        ({"covers": [Cover("/usr/x.py", False)]}, "--ro-bind /dev/null /usr/x.py", "--tmpfs /usr/x.py"),
    ],
)
def test_what_is_asked_for_is_told(walls: dict[str, Any], there: str, not_there: str) -> None:
    words = told(**walls)

    assert f" {there} " in words
    assert f" {not_there} " not in words


def test_variables_are_told_apart_from_the_command_line() -> None:
    walls = replace(WALLS, variables={"A": "b c"})

    assert list(variable_arguments(walls))[-3:] == ["--setenv", "_PROCTOR_CARRIED_0", "A=b c"]
    assert next(variable_arguments(walls)) == "--clearenv"
    assert "b c" not in told(variables={"A": "b c"})


def test_a_cover_below_a_mount_comes_after_it_and_any_other_before() -> None:
    words = told(mounts=["/opt/p"], covers=[Cover("/opt/p/env"), Cover("/usr/q")])

    places = [words.index(f"--tmpfs {path}") for path in ("/usr/q", "/opt/p/env")]
    assert places[0] < words.index("--ro-bind /opt/p ") < places[1]


@pytest.mark.parametrize(("user", "word"), [(SandboxUser(), "keep"), (ROOT, "drop")])
def test_a_door_is_led_to_before_the_command_starts_and_root_is_left(user: SandboxUser, word: str) -> None:
    lead = Forward(4000, "/made/door.sock", "/usr/bin/python3", "SCRIPT")

    words = told(("agent", "--go"), forwards=(lead,), user=user)

    assert "--bind /made/door.sock /run/proctor/endpoint" in words
    assert (
        f" /run/proctor/gate /usr/bin/python3 -IS -c SCRIPT out 4000 /run/proctor/endpoint {word} -- "
        in words
    )
    assert words.endswith(" sh /workspace agent --go ")


def test_only_what_could_be_seen_is_covered_and_never_what_commands_need(tmp_path: Path) -> None:
    shown, package = tmp_path / "shown", tmp_path / "shown" / "package"
    package.mkdir(parents=True)
    (package / "env.py").touch()
    hidden = [package, package / "env.py", tmp_path / "elsewhere", Path("/usr/bin"), Path("/usr")]

    assert find_covers(hidden, [str(shown), "/usr"]) == [Cover(str(package.resolve()))]
