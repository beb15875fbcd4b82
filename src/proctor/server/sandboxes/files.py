"""Read and write files of a sandbox, from inside it: no path or link can lead out of it.

Knows nothing of what isolates it.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import PurePosixPath

from proctor.server.problems import ApiError, InvalidError, NotFoundError, TooLargeError
from proctor.server.sandboxes.backend import BackendSandbox

CHUNK_BYTES = 65_536
MEGABYTE = 2**20
SCRIPT_SECONDS = 10.0
MISSING, NO_FILE, TOO_LARGE = 44, 45, 46
READ = f"""
[ -e "$1" ] || exit {MISSING}
[ -f "$1" ] || exit {NO_FILE}
[ "$(wc -c < "$1")" -le "$2" ] || exit {TOO_LARGE}
exec head -c "$2" < "$1"
"""
WRITE = f"""
[ -d "$1" ] && exit {NO_FILE}
mkdir -p -- "$(dirname -- "$1")" && cat > "$2"
"""
MOVE = 'mv -f -- "$2" "$1"'
REMOVE = 'rm -f -- "$1"'


def inner_path(path: str) -> str:
    """A path below the sandbox's folder, as commands inside name it."""
    parts = PurePosixPath(path).parts
    if not parts or path.startswith("/") or ".." in parts or "\0" in path:
        raise InvalidError(
            f"{path!r} is not a path below the sandbox's folder; use one such as src/a.py.", field="path"
        )
    return f"./{PurePosixPath(path)}"


@asynccontextmanager
async def open_file_stream(
    sandbox: BackendSandbox, path: str, most_mb: int
) -> AsyncIterator[AsyncGenerator[bytes, None]]:
    """The bytes of a file, as they come; raises before the first if it does not exist."""
    command = ["sh", "-c", READ, "sh", inner_path(path), str(most_mb * MEGABYTE)]
    async with sandbox.open_command(command) as piped:
        piped.stdin.close()
        first = await piped.stdout.read(CHUNK_BYTES)
        if not first and (code := await piped.wait()):
            raise file_error(code, path, most_mb)

        async def chunks() -> AsyncGenerator[bytes, None]:
            chunk = first
            while chunk:
                yield chunk
                chunk = await piped.stdout.read(CHUNK_BYTES)

        yield chunks()


async def write_file(sandbox: BackendSandbox, path: str, chunks: AsyncIterable[bytes], most_mb: int) -> int:
    """Write a file completely or not at all; returns its size."""
    target = inner_path(path)
    part = f"{target}.part-{secrets.token_hex(4)}"
    try:
        async with sandbox.open_command(["sh", "-c", WRITE, "sh", target, part]) as piped:
            size = 0
            async for chunk in chunks:
                size += len(chunk)
                if size > most_mb * MEGABYTE:
                    raise file_error(TOO_LARGE, path, most_mb)
                with suppress(BrokenPipeError, ConnectionResetError):  # the exit code says why
                    piped.stdin.write(chunk)
                    await piped.stdin.drain()
            piped.stdin.close()
            if code := await piped.wait():
                raise file_error(code, path, most_mb)
        moved = await run_script(sandbox, MOVE, target, part)  # on its own: input that broke off also ends
        if moved != 0:
            raise file_error(moved or NO_FILE, path, most_mb)
    except BaseException:
        await run_script(sandbox, REMOVE, part)
        raise
    return size


async def run_script(sandbox: BackendSandbox, script: str, *command: str) -> int | None:
    ran = await sandbox.run(
        ["sh", "-c", script, "sh", *command], stdin=b"", variables={}, seconds=SCRIPT_SECONDS
    )
    return ran.code


def file_error(code: int, path: str, most_mb: int) -> ApiError:
    if code == MISSING:
        return NotFoundError(f"The sandbox has no file {path!r}.", code="no_such_file")
    if code == NO_FILE:
        return InvalidError(f"{path!r} is a folder or a device, not a file.", field="path")
    if code == TOO_LARGE:
        return TooLargeError(
            f"{path!r} has more than {most_mb} MB; compress it, or transfer it in parts.",
            most_bytes=most_mb * MEGABYTE,
        )
    return InvalidError(f"{path!r} cannot be read or written (code {code}).", field="path")
