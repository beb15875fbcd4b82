"""Run inside a sandbox: serve files over SFTP, version 3, on standard input and output.

Stands alone, on the standard library of any Python 3: nothing else of Proctor can be seen from there. It does
whatever it is asked: that it can reach no more than the agent can is the sandbox's doing, not its own.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
import time
from collections.abc import Callable
from typing import Any

INIT, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT, OPENDIR = 1, 3, 4, 5, 6, 7, 8, 9, 10, 11
READDIR, REMOVE, MKDIR, RMDIR, REALPATH, STAT, RENAME, READLINK, SYMLINK = 12, 13, 14, 15, 16, 17, 18, 19, 20
VERSION, STATUS, HANDLE, DATA, NAME, ATTRS = 2, 101, 102, 103, 104, 105
OK, EOF, NO_SUCH_FILE, DENIED, FAILURE, BAD_MESSAGE, UNSUPPORTED = 0, 1, 2, 3, 4, 5, 8
HAS_SIZE, HAS_OWNER, HAS_MODE, HAS_TIMES = 1, 2, 4, 8
LONGEST_PACKET = 1_000_000
LONGEST_READ = 262_144
NAMES_AT_ONCE = 100
CODES = {errno.ENOENT: NO_SUCH_FILE, errno.ENOTDIR: NO_SUCH_FILE, errno.EACCES: DENIED, errno.EPERM: DENIED}


class PacketReader:
    """The fields of a packet, one after the other."""

    def __init__(self, packet: bytes) -> None:
        self.rest = packet

    def take(self, size: int) -> bytes:
        if size > len(self.rest):
            raise ValueError("a packet is too short")
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def long(self) -> int:
        return int(struct.unpack(">Q", self.take(8))[0])

    def text(self) -> bytes:
        return self.take(self.number())

    def attributes(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        flags = self.number()
        if flags & HAS_SIZE:
            found["size"] = self.long()
        if flags & HAS_OWNER:
            self.take(8)  # skipped: all files here have one owner
        if flags & HAS_MODE:
            found["mode"] = self.number() & 0o7777
        if flags & HAS_TIMES:
            found["times"] = (self.number(), self.number())
        return found


def encode_text(value: bytes) -> bytes:
    return struct.pack(">I", len(value)) + value


def encode_attributes(found: os.stat_result) -> bytes:
    times = (int(found.st_atime) & 0xFFFFFFFF, int(found.st_mtime) & 0xFFFFFFFF)
    flags = HAS_SIZE | HAS_OWNER | HAS_MODE | HAS_TIMES
    return struct.pack(">IQIIIII", flags, found.st_size, found.st_uid, found.st_gid, found.st_mode, *times)


def format_long_name(name: bytes, found: os.stat_result) -> bytes:
    when = time.strftime("%b %d %H:%M", time.gmtime(found.st_mtime))
    words = f"{stat.filemode(found.st_mode)} {found.st_nlink} agent agent {found.st_size} {when} "
    return words.encode() + name


def encode_names(entries: list[tuple[bytes, os.stat_result | None]]) -> bytes:
    packed = [struct.pack(">I", len(entries))]
    for name, found in entries:
        if found is None:
            packed.append(encode_text(name) + encode_text(name) + struct.pack(">I", 0))
        else:
            packed.append(
                encode_text(name) + encode_text(format_long_name(name, found)) + encode_attributes(found)
            )
    return b"".join(packed)


class SftpServer:
    """Answers one client."""

    def __init__(self, target_first: bool) -> None:
        self.target_first = target_first
        self.files: dict[bytes, int] = {}
        self.folders: dict[bytes, list[bytes]] = {}
        self.made = 0
        self.answers: dict[int, Callable[[PacketReader], tuple[int, bytes]]] = {
            OPEN: self.open,
            CLOSE: self.close,
            READ: self.read,
            WRITE: self.write,
            LSTAT: lambda fields: (ATTRS, encode_attributes(os.lstat(fields.text()))),
            STAT: lambda fields: (ATTRS, encode_attributes(os.stat(fields.text()))),
            FSTAT: lambda fields: (ATTRS, encode_attributes(os.fstat(self.file(fields)))),
            SETSTAT: lambda fields: self.set_attributes(fields.text(), fields),
            FSETSTAT: lambda fields: self.set_attributes(self.file(fields), fields),
            OPENDIR: self.open_folder,
            READDIR: self.read_folder,
            REMOVE: lambda fields: perform(os.unlink, fields.text()),
            MKDIR: self.make_folder,
            RMDIR: lambda fields: perform(os.rmdir, fields.text()),
            REALPATH: lambda fields: (NAME, encode_names([(os.path.realpath(fields.text() or b"."), None)])),
            RENAME: self.rename,
            READLINK: lambda fields: (NAME, encode_names([(os.readlink(fields.text()), None)])),
            SYMLINK: self.link,
        }

    def answer(self, kind: int, fields: PacketReader) -> bytes:
        if kind == INIT:
            return struct.pack(">BI", VERSION, 3)
        number = struct.pack(">I", fields.number())
        try:
            answer_kind, body = self.answers[kind](fields)
        except KeyError:
            answer_kind, body = encode_status(UNSUPPORTED, "this is not done here")
        except EOFError:
            answer_kind, body = encode_status(EOF, "the end")
        except OSError as error:
            answer_kind, body = encode_status(
                CODES.get(error.errno or 0, FAILURE), error.strerror or "it failed"
            )
        except ValueError as error:
            answer_kind, body = encode_status(BAD_MESSAGE, str(error))
        return bytes([answer_kind]) + number + body

    def handle(self) -> bytes:
        self.made += 1
        return b"%d" % self.made

    def file(self, fields: PacketReader) -> int:
        handle = fields.text()
        if handle not in self.files:
            raise ValueError("there is no such handle")
        return self.files[handle]

    def open(self, fields: PacketReader) -> tuple[int, bytes]:
        path, wanted, attributes = fields.text(), fields.number(), fields.attributes()
        flags = {1: os.O_RDONLY, 2: os.O_WRONLY, 3: os.O_RDWR}.get(wanted & 3, os.O_RDONLY)
        for bit, flag in ((4, os.O_APPEND), (8, os.O_CREAT), (16, os.O_TRUNC), (32, os.O_EXCL)):
            flags |= flag if wanted & bit else 0
        handle = self.handle()
        self.files[handle] = os.open(path, flags, attributes.get("mode", 0o666))
        return HANDLE, encode_text(handle)

    def close(self, fields: PacketReader) -> tuple[int, bytes]:
        handle = fields.text()
        if handle in self.files:
            os.close(self.files.pop(handle))
        elif self.folders.pop(handle, None) is None:
            raise ValueError("there is no such handle")
        return DONE

    def read(self, fields: PacketReader) -> tuple[int, bytes]:
        file, offset, size = self.file(fields), fields.long(), fields.number()
        found = os.pread(file, min(size, LONGEST_READ), offset)
        if not found and size:
            raise EOFError
        return DATA, encode_text(found)

    def write(self, fields: PacketReader) -> tuple[int, bytes]:
        file, offset, content = self.file(fields), fields.long(), fields.text()
        while content:
            written = os.pwrite(file, content, offset)
            content, offset = content[written:], offset + written
        return DONE

    def set_attributes(self, target: Any, fields: PacketReader) -> tuple[int, bytes]:
        wanted = fields.attributes()
        if "size" in wanted:
            os.truncate(target, wanted["size"])
        if "mode" in wanted:
            os.chmod(target, wanted["mode"])
        if "times" in wanted:
            os.utime(target, wanted["times"])
        return DONE

    def open_folder(self, fields: PacketReader) -> tuple[int, bytes]:
        path = fields.text()
        handle = self.handle()
        inside = [os.path.join(path, name) for name in sorted(os.listdir(path))]
        self.folders[handle] = [os.path.join(path, b"."), os.path.join(path, b".."), *inside]
        return HANDLE, encode_text(handle)

    def read_folder(self, fields: PacketReader) -> tuple[int, bytes]:
        left = self.folders.get(fields.text())
        if left is None:
            raise ValueError("there is no such handle")
        if not left:
            raise EOFError
        taken, left[:] = left[:NAMES_AT_ONCE], left[NAMES_AT_ONCE:]
        return NAME, encode_names(
            [(os.path.basename(path), found) for path in taken if (found := lstat_or_none(path))]
        )

    def link(self, fields: PacketReader) -> tuple[int, bytes]:
        first, second = fields.text(), fields.text()
        link, target = (second, first) if self.target_first else (first, second)
        return perform(os.symlink, target, link)

    def make_folder(self, fields: PacketReader) -> tuple[int, bytes]:
        os.mkdir(fields.text(), fields.attributes().get("mode", 0o777))
        return DONE

    def rename(self, fields: PacketReader) -> tuple[int, bytes]:
        old, new = fields.text(), fields.text()
        if os.path.lexists(new):
            raise OSError(errno.EEXIST, "there is such a file already")
        return perform(os.rename, old, new)


def lstat_or_none(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def perform(act: Callable[..., None], *paths: bytes) -> tuple[int, bytes]:
    act(*paths)
    return DONE


def encode_status(code: int, message: str) -> tuple[int, bytes]:
    return STATUS, struct.pack(">I", code) + encode_text(message.encode()) + encode_text(b"")


DONE = encode_status(OK, "")


def main() -> None:
    server, source, target = SftpServer(sys.argv[-1] == "target-first"), sys.stdin.buffer, sys.stdout.buffer
    while len(head := source.read(4)) == 4:
        size = struct.unpack(">I", head)[0]
        if not 0 < size <= LONGEST_PACKET:
            return
        packet = source.read(size)
        if len(packet) < size:
            return
        target.write(encode_text(server.answer(packet[0], PacketReader(packet[1:]))))
        target.flush()


if __name__ == "__main__":
    main()
