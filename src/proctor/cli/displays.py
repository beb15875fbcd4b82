"""Choose how a run is shown: live on a terminal, in plain lines elsewhere. Rich is loaded only to be used."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from proctor.cli.progress import Settings
from proctor.evaluation import Control

if TYPE_CHECKING:
    from proctor.cli.display import LiveDisplay
    from proctor.cli.plain import PlainDisplay


def choose_display(
    settings: Settings,
    control: Control,
    *,
    disabled: bool = False,
    fullscreen: bool = False,
    stream: TextIO | None = None,
) -> LiveDisplay | PlainDisplay:
    """The display that suits `stream`, which is stderr unless told otherwise."""
    stream = stream or sys.stderr
    can_draw = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if disabled or not can_draw:
        from proctor.cli.plain import PlainDisplay

        return PlainDisplay(stream, settings, control, bar=can_draw)

    from rich.console import Console

    from proctor.cli.display import LiveDisplay

    console = Console(file=stream, highlight=False)
    return LiveDisplay(console, settings, control, fullscreen)
