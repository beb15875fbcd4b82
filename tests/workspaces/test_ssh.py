"""A workspace over ssh: served to foreign clients, and used where somebody else serves it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

asyncssh = pytest.importorskip("asyncssh", reason="the extra 'ssh' is not installed")

from proctor.env.template_rollout import TemplateRollout  # noqa: E402
from proctor.env.templates import Environment  # noqa: E402
from proctor.errors import InfraError  # noqa: E402
from proctor.workspaces.folder import RolloutFolder  # noqa: E402
from proctor.workspaces.ssh_client import SshWorkspace  # noqa: E402
from proctor.workspaces.ssh_server import SshServer  # noqa: E402
from proctor.workspaces.tools import bind_tools  # noqa: E402

pytestmark = pytest.mark.usefixtures("sandboxes")

Yields = AsyncGenerator[Any, str]


class Served(NamedTuple):
    """A rollout's folder that can be reached by ssh."""

    rollout: TemplateRollout
    folder: RolloutFolder
    server: SshServer
    params: dict[str, Any]
    workspace: SshWorkspace

    async def connected(self, **settings: Any) -> Any:
        """A client that is none of ours."""
        port = int(self.server.url.rpartition(":")[2])
        key = asyncssh.import_private_key(settings.pop("key", self.params["client_key"]))
        user = settings.pop("user", self.params["user"])
        return await asyncssh.connect(
            "127.0.0.1",
            port,
            username=user,
            client_keys=[key],
            known_hosts=None,
            config=None,
            agent_path=None,
        )


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    env = Environment("shells")
    place = env.workspace(seconds=20)

    @env.template()
    async def shells() -> Yields:
        (place.path / "given.txt").write_text("given\n")
        yield "Go."
        yield float((await place.run("ls")).code == 0)

    rollout = env.create_rollout(shells())
    server = SshServer()
    await server.start()
    try:
        await rollout.begin()
        folder = rollout.folders[place]
        params = server.add(lambda: folder, folder.spec)
        workspace = SshWorkspace(server.url, params)
        yield Served(rollout, folder, server, params, workspace)
        await workspace.close()
    finally:
        await server.close()
        await rollout.close()


def over_ssh(act: Callable[[Served], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(50), served() as all_of_it:
            await act(all_of_it)

    asyncio.run(run())


def test_a_binding_says_what_a_client_needs() -> None:
    async def act(all_of_it: Served) -> None:
        params = all_of_it.params
        assert set(params) == {"user", "host_pubkey", "client_key", "shell", "cwd", "isolation"}
        assert params["host_pubkey"].startswith("ssh-ed25519 ")
        assert "OPENSSH PRIVATE KEY" in params["client_key"]
        assert (params["shell"], params["cwd"], params["isolation"]) == ("bash", "/workspace", "bwrap")

    over_ssh(act)


def test_our_client_runs_commands_with_input_variables_codes_and_time_limits() -> None:
    async def act(all_of_it: Served) -> None:
        run = all_of_it.workspace.run
        ran = await run(
            "pwd; cat; echo $A; echo wrong >&2; exit 3", seconds=9, stdin=b"in\n", variables={"A": "b c"}
        )
        assert (ran.code, ran.output) == (3, "/workspace\nin\nb c\nwrong\n")
        assert (await run(["printf", "%s|", "a b", "$HOME", "'"], seconds=9)).output == "a b|$HOME|'|"
        late = await run("echo begun; sleep 60", seconds=1)
        assert (late.code, late.output) == (None, "begun\n")
        large = await run("head -c 5000000 /dev/zero | tr '\\0' x", seconds=20)
        assert "4,000,000 bytes left out" in large.output

    over_ssh(act)


def test_the_same_tools_work_over_ssh() -> None:
    async def act(all_of_it: Served) -> None:
        tools = {name: tool.function for name, tool in bind_tools(all_of_it.workspace, 10).items()}
        assert await tools["bash"](command="cat given.txt") == "given"
        await tools["write_file"](path="a/ünïcode.txt", content="one\r\ntwo\n")
        await tools["edit_file"](path="a/ünïcode.txt", old="two", new="three")
        assert (all_of_it.folder.path / "a" / "ünïcode.txt").read_bytes() == b"one\r\nthree\n"
        assert await tools["list_files"](pattern="**/*.txt") == "a/ünïcode.txt\ngiven.txt"
        assert await tools["search_files"](pattern="thr+ee") == "a/ünïcode.txt:2:three"

    over_ssh(act)


def test_a_foreign_client_gets_a_shell_at_a_terminal() -> None:
    async def act(all_of_it: Served) -> None:
        async with await all_of_it.connected() as connection:
            process = await connection.create_process(term_type="xterm", term_size=(91, 33))
            process.stdin.write("stty size; echo $((6*7)); exit 5\n")
            printed = await process.stdout.read()
            await process.wait_closed()
        assert "33 91" in printed
        assert "42" in printed
        assert process.exit_status == 5

    over_ssh(act)


def test_files_go_both_ways_over_sftp() -> None:
    async def act(all_of_it: Served) -> None:
        async with await all_of_it.connected() as connection, connection.start_sftp_client() as sftp:
            assert await sftp.realpath(".") == "/workspace"
            async with sftp.open("big.bin", "wb") as file:
                await file.write(bytes(range(256)) * 4000)
            async with sftp.open("big.bin", "rb") as file:
                assert await file.read() == bytes(range(256)) * 4000
            await sftp.mkdir("folder")
            await sftp.rename("big.bin", "folder/moved.bin")
            assert (await sftp.stat("folder/moved.bin")).size == 1_024_000
            assert sorted(await sftp.listdir("folder")) == [".", "..", "moved.bin"]
            await sftp.chmod("folder/moved.bin", 0o600)
            await sftp.truncate("folder/moved.bin", 10)
            assert (await sftp.lstat("folder/moved.bin")).size == 10
            await sftp.remove("folder/moved.bin")
            await sftp.rmdir("folder")
            assert not await sftp.exists("folder")
            with pytest.raises(asyncssh.SFTPNoSuchFile):
                await sftp.open("missing.txt")
            await sftp.put(__file__, "test.py")
        assert (all_of_it.folder.path / "test.py").read_text() == Path(__file__).read_text()

    over_ssh(act)


def test_no_link_leads_sftp_out_of_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("what lies outside")

    async def act(all_of_it: Served) -> None:
        async with await all_of_it.connected() as connection, connection.start_sftp_client() as sftp:
            await sftp.symlink(str(tmp_path), "out")
            await sftp.symlink(str(tmp_path / "secret"), "file")
            above = f"{'../' * 20}{tmp_path}/secret"
            for path in ("out/secret", "file", str(tmp_path / "secret"), above):
                with pytest.raises(asyncssh.SFTPError):
                    await sftp.open(path)
                with pytest.raises(asyncssh.SFTPError):
                    await sftp.open(path, "w")
            with pytest.raises(asyncssh.SFTPError):
                await sftp.listdir("out")
            with pytest.raises(asyncssh.SFTPError):
                await sftp.open("/etc/passwd", "w")

    over_ssh(act)
    assert [path.name for path in tmp_path.iterdir() if path.name != "state"] == ["secret"]
    assert (tmp_path / "secret").read_text() == "what lies outside"


def test_a_broken_packet_ends_sftp_and_nothing_else() -> None:
    async def act(all_of_it: Served) -> None:
        async with await all_of_it.connected() as connection:
            writer, reader, _ = await connection.open_session(subsystem="sftp", encoding=None)
            writer.write(b"\xff\xff\xff\xff" + b"x" * 100)
            assert await reader.read() == b""
            assert (await connection.run("echo still here")).stdout == "still here\n"

    over_ssh(act)


def test_who_has_another_rollouts_key_or_none_is_not_let_in() -> None:
    async def act(all_of_it: Served) -> None:
        other = all_of_it.server.add(lambda: all_of_it.folder, all_of_it.folder.spec)
        with pytest.raises(asyncssh.PermissionDenied):
            await all_of_it.connected(key=other["client_key"])
        with pytest.raises(asyncssh.PermissionDenied):
            await all_of_it.connected(user="root")
        wrong_host = {**all_of_it.params, "host_pubkey": asyncssh.generate_private_key("ssh-ed25519")}
        wrong_host["host_pubkey"] = wrong_host["host_pubkey"].export_public_key().decode()
        with pytest.raises(InfraError, match="cannot connect to the workspace"):
            await SshWorkspace(all_of_it.server.url, wrong_host).run("true", seconds=5)

    over_ssh(act)


def test_nothing_is_forwarded_to_the_machine() -> None:
    async def act(all_of_it: Served) -> None:
        async with await all_of_it.connected() as connection:
            port = int(all_of_it.server.url.rpartition(":")[2])
            with pytest.raises(asyncssh.ChannelOpenError):
                await connection.open_connection("127.0.0.1", port)
            with pytest.raises(asyncssh.ChannelListenError):
                await connection.start_server(lambda *_: None, "127.0.0.1", 0)

    over_ssh(act)


def test_who_leaves_takes_the_command_along() -> None:
    async def act(all_of_it: Served) -> None:
        connection = await all_of_it.connected()
        await connection.create_process("sleep 60")
        while not all_of_it.folder.is_busy:
            await asyncio.sleep(0.01)
        connection.abort()
        while all_of_it.folder.is_busy:
            await asyncio.sleep(0.01)

    over_ssh(act)


def test_sessions_end_when_grading_starts_and_none_can_be_begun() -> None:
    async def act(all_of_it: Served) -> None:
        async with await all_of_it.connected() as connection:
            process = await connection.create_process("sleep 60")
            while not all_of_it.folder.is_busy:
                await asyncio.sleep(0.01)
            grade = await all_of_it.rollout.settle("")
            assert grade.score.reward == 1.0
            assert (await process.wait()).exit_status == 137
            refused = await connection.run("echo again")
            assert (refused.exit_status, refused.stdout) == (126, "")
            assert "the agent's work is being scored" in refused.stderr

    over_ssh(act)


def test_a_removed_user_is_sent_away() -> None:
    async def act(all_of_it: Served) -> None:
        connection = await all_of_it.connected()
        all_of_it.server.remove(all_of_it.params["user"])
        await connection.wait_closed()
        with pytest.raises(asyncssh.PermissionDenied):
            await all_of_it.connected()

    over_ssh(act)
