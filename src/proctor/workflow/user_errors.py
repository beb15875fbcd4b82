"""What an author's exception says, and on which of the author's lines. Knows nothing of outcomes."""

from __future__ import annotations

import traceback
from pathlib import Path

LONGEST_MESSAGE = 2_000


def describe_user_error(error: BaseException, folder: Path) -> str:
    """The exception with its message, and the last line of the author's code that led to it."""
    text = " ".join(str(error).split())[:LONGEST_MESSAGE]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)] or frames
    where = f" ({own[-1].filename}:{own[-1].lineno})" if own else ""
    return f"{type(error).__name__}{': ' if text else ''}{text}{where}"
