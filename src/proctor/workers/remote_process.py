"""A worker process on another machine: connects to the run, takes what it needs from there, and plays.

Started by the cluster with a line of instructions on its standard input. Greets with its own certificate,
waits until the run knows it, and dies with the process that started it.
"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import tempfile
import traceback
from importlib.metadata import version
from pathlib import Path

import msgspec

from proctor.errors import ConfigError
from proctor.support.loop import exit_now, prepare_child, run_in_loop, tune_garbage_collector
from proctor.support.processes import die_with_parent
from proctor.workers.bundles import BundleCache, show_in
from proctor.workers.certificates import Certificate, client_context, is_pinned, make_certificate
from proctor.workers.frames import BundlePiece, FrameWriter, MissingBundles, Unpack, Unpacked, read_frame
from proctor.workers.link import GREETING_SECONDS, WELCOME, keep_alive
from proctor.workers.process import serve

CONNECT_SECONDS = 10.0


class WorkerInstructions(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run is, and what lets this worker in."""

    host: str
    port: int
    certificate: str
    token: str


class WorkerGreeting(msgspec.Struct, frozen=True, kw_only=True):
    """What this worker is."""

    proctor: str
    python: str
    certificate: str


async def connect(
    instructions: WorkerInstructions, own: Certificate
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = client_context(own, instructions.certificate)
    async with asyncio.timeout(CONNECT_SECONDS):
        reader, writer = await asyncio.open_connection(instructions.host, instructions.port, ssl=context)
    if not is_pinned(writer.get_extra_info("ssl_object"), instructions.certificate):
        raise ConfigError("The run showed another certificate than the one announced.")
    keep_alive(writer.get_extra_info("socket"))
    writer.write(instructions.token.encode())
    async with asyncio.timeout(GREETING_SECONDS):
        if await reader.readexactly(len(WELCOME)) != WELCOME:
            raise ConfigError("The run did not let this worker in.")
    return reader, writer


async def unpack(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
    """Take what the run sends first; False if it has hung up."""
    wanted = await read_frame(reader)
    if not isinstance(wanted, Unpack):
        return False
    os.environ.update(wanted.variables)
    sender, cache = FrameWriter(writer), BundleCache()
    missing = [digest for digest in wanted.bundles if cache.find(digest) is None]
    sender.send(MissingBundles(missing))
    for digest in missing:
        with tempfile.NamedTemporaryFile(prefix="proctor-bundle-") as file:
            while True:
                piece = await read_frame(reader)
                if not isinstance(piece, BundlePiece):
                    return False
                if not piece.data:
                    break
                file.write(piece.data)
            file.flush()
            cache.take(digest, Path(file.name))
    roots = {digest: str(cache.find(digest)) for digest in wanted.bundles}
    for digest, inner, shown in wanted.shown:
        show(Path(roots[digest]) / inner, Path.cwd() / shown)
    run_folder = Path(tempfile.mkdtemp(prefix="run-", dir=Path.cwd().parent))
    sender.send(Unpacked(roots, str(run_folder)))
    return True


def show(path: Path, at: Path) -> None:
    if at.is_dir() and path.is_dir():
        show_in(at, path)
    elif not at.exists():
        at.parent.mkdir(parents=True, exist_ok=True)
        at.symlink_to(path)


async def play(instructions: WorkerInstructions, own: Certificate) -> None:
    reader, writer = await connect(instructions, own)
    if await unpack(reader, writer):
        sys.path.append(str(Path.cwd()))  # what lies beside the run's own files may be imported
        await serve(reader, writer)


def main() -> None:
    greeting_to, parent = int(sys.argv[2]), int(sys.argv[3])
    if sys.platform == "linux":  # it must not outlive what the cluster counts its resources by
        die_with_parent(parent)
    prepare_child()
    code = 0
    try:
        instructions = msgspec.json.decode(sys.stdin.readline(), type=WorkerInstructions)
        own = make_certificate()
        greeting = WorkerGreeting(
            proctor=version("proctor"), python=platform.python_version(), certificate=own.public
        )
        with os.fdopen(greeting_to, "wb") as pipe:
            pipe.write(msgspec.json.encode(greeting) + b"\n")
        if sys.stdin.readline():  # the run knows the certificate now
            tune_garbage_collector()
            run_in_loop(play(instructions, own))
    except TimeoutError:
        sys.stderr.write("The run did not answer in time.\n")
        code = 1
    except (ConfigError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    exit_now(code)
