"""Put something hostile under a name, in the folder one stands in: run as it is, inside a sandbox too.

    python3 planting.py TREASURE NAME=KIND …

Stands alone, on the standard library of any Python 3. TREASURE is a file that must stay as it is.
"""

import os
import socket
import stat
import sys

SPARSE_BYTES = 10 * 2**30
LEVEL, LEVELS = "deep" * 25, 300
"""Longer than any path may be, and deeper than a walk goes."""


def plant_link(name: str, treasure: str) -> None:
    os.symlink(treasure, name)


def plant_folder_link(name: str, treasure: str) -> None:
    os.symlink(os.path.dirname(treasure), name)


def plant_hard_link(name: str, treasure: str) -> None:
    """Where the treasure cannot be reached, to a file beside it."""
    try:
        os.link(treasure, name)
    except OSError:
        with open(f"{name}.twin", "w") as file:
            file.write("twin")
        os.link(f"{name}.twin", name)


def plant_fifo(name: str, treasure: str) -> None:
    os.mkfifo(name)


def plant_socket(name: str, treasure: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(name)


def plant_device(name: str, treasure: str) -> None:
    """Only root outside of a sandbox can; for others it is a FIFO."""
    try:
        os.mknod(name, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # /dev/zero never ends
    except OSError:
        os.mkfifo(name)


def plant_sparse(name: str, treasure: str) -> None:
    """Ten gigabytes that occupy nothing, or as much as a file may have here."""
    for size in (SPARSE_BYTES, 64 * 2**20):
        try:
            with open(name, "wb") as file:
                file.truncate(size)
            return
        except OSError:
            continue


def plant_deep(name: str, treasure: str) -> None:
    home = os.getcwd()
    os.mkdir(name)
    os.chdir(name)
    for _ in range(LEVELS):
        os.mkdir(LEVEL)
        os.chdir(LEVEL)
    with open("bottom", "w") as file:
        file.write("bottom")
    os.chdir(home)


def plant_shut(name: str, treasure: str) -> None:
    """A folder without permissions, with a link in it."""
    os.mkdir(name)
    os.mkdir(f"{name}/inner")
    os.symlink(treasure, f"{name}/inner/link")
    with open(f"{name}/inner/file", "wb") as file:
        file.write(b"x" * 2**20)
    os.chmod(f"{name}/inner", 0)
    os.chmod(name, 0)


def plant_names(name: str, treasure: str) -> None:
    """Names that are no text, look like options, or climb."""
    os.mkdir(name)
    for odd in (b"\xff\xfe", b"new\nline", b"-rf", b"...", b"a" * 255, b"\x1b[2J"):
        with open(name.encode() + b"/" + odd, "w") as file:
            file.write("odd")


KINDS = {
    "link": plant_link,
    "folder_link": plant_folder_link,
    "hard_link": plant_hard_link,
    "fifo": plant_fifo,
    "socket": plant_socket,
    "device": plant_device,
    "sparse": plant_sparse,
    "deep": plant_deep,
    "shut": plant_shut,
    "names": plant_names,
}


def plant(treasure: str, *wishes: str) -> None:
    for wish in wishes:
        name, _, kind = wish.partition("=")
        if os.path.isfile(name):
            os.unlink(name)
        KINDS[kind](name, treasure)


if __name__ == "__main__":
    plant(*sys.argv[1:])
    print("planted")
