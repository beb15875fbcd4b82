"""How much room folders take, however they were filled.

Counts what is really occupied, a file with many names once, and follows no links. Knows nothing of runs.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from pathlib import Path

BLOCK_BYTES = 512
"""The unit of st_blocks, whatever the file system."""
ENTRY_BYTES = 512
"""What a file without content is counted as: a million of them fill a disk too."""


def occupied_bytes(folders: Iterable[Path], enough: int) -> int:
    """Stops when it is clear that there is more than enough. Blocks."""
    total = 0
    known: set[tuple[int, int]] = set()
    waiting = [str(folder) for folder in folders]
    while waiting and total <= enough:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        waiting.append(entry.path)
                    elif status.st_nlink > 1:
                        if (status.st_dev, status.st_ino) in known:
                            continue
                        known.add((status.st_dev, status.st_ino))
                    total += max(status.st_blocks * BLOCK_BYTES, ENTRY_BYTES)
        except OSError as error:  # most are gone meanwhile
            if error.errno == errno.ENAMETOOLONG:  # who digs so deep has something to hide
                return enough + 1
    return total
