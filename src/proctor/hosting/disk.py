"""How much room folders take, by names in open folders: who fills them may move things meanwhile.

Counts what is really occupied, a file with many names once. Knows nothing of runs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

BLOCK_BYTES = 512
"""The unit of st_blocks, whatever the file system."""
ENTRY_BYTES = 512
"""What a file without content is counted as: a million of them fill a disk too."""


def occupied_bytes(folders: Iterable[Path], enough: int) -> int:
    """Blocks; stops counting when it is clear that there is more than enough."""
    total = 0
    known: set[tuple[int, int]] = set()
    for folder in folders:
        for _, inner, files, descriptor in os.fwalk(folder, onerror=None):
            for name in (*inner, *files):
                try:
                    status = os.lstat(name, dir_fd=descriptor)
                except OSError:
                    continue
                if status.st_nlink > 1 and (identity := (status.st_dev, status.st_ino)) in known:
                    continue
                if status.st_nlink > 1:
                    known.add(identity)
                total += max(status.st_blocks * BLOCK_BYTES, ENTRY_BYTES)
            if total > enough:
                return total
    return total
