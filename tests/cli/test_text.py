"""Whatever a server, a model or an environment says, a terminal is only ever shown text."""

from __future__ import annotations

import ast
import io
import json
import re
from pathlib import Path

import pytest
from rich.text import Text

import proctor.cli
from proctor.cli.views.escape import echo, one_line, strip_escapes
from proctor.cli.views.lines import LinePainter, styled_line
from proctor.cli.views.page import UNLIMITED, PlainPainter
from proctor.cli.views.printing import open_console
from proctor.cli.views.stdout import print_json

HOSTILE = [
    *("\u202e", "\u202d", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c"),
    *("\u200b", "\u2060", "\ufeff", "\u00ad", "\u180e", "\U000e0041", "\u2028", "\u2029"),
    *("\x00", "\x07", "\x08", "\x1b", "\x7f", "\x85", "\x9b", "\x9d", "\r"),
]
ATTACKS = [
    *HOSTILE,
    *(
        "\x1b[2J",
        "\x1b]0;title\x07",
        "\x1b]8;;http://evil\x1b\\here",
        "\x1b]52;c;aGk=\x07",
        "\x9b31m",
        "\x1bc",
    ),
]
BEYOND = re.compile("[" + "".join(map(re.escape, HOSTILE)) + "]")


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
def test_no_way_of_printing_lets_a_code_through(attack: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"ada{attack}bob"
    echo(text)
    echo(text, err=True)
    with open_console() as console:
        console.print(Text(text))
        console.print(text)
    shown = capsys.readouterr()
    stream = io.StringIO()
    drawn = [
        PlainPainter(stream).paint(styled_line(text), UNLIMITED),
        PlainPainter(stream).paint(styled_line(text), 60),
    ]
    colored = LinePainter(stream).paint(styled_line(text), 60)
    for each in (shown.out, shown.err, strip_escapes(text), one_line(text), colored, *drawn):
        assert not BEYOND.search(each), ascii(each)
        assert "ada" in each


@pytest.mark.parametrize("attack", ATTACKS, ids=ascii)
def test_json_says_the_same_and_shows_no_code(attack: str, capsys: pytest.CaptureFixture[str]) -> None:
    document = {"name": attack, attack: 1}
    print_json(document)
    out = capsys.readouterr().out
    assert not BEYOND.search(out)
    assert json.loads(out) == document


@pytest.mark.parametrize("text", ["[red]x[/red]", "[link=http://evil]x[/link]", "[/]", "[bold"])
def test_markup_of_others_is_shown_as_it_is(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with open_console() as console:
        console.print(Text(text))
        console.print(text)
    assert capsys.readouterr().out.splitlines() == [text, text]


@pytest.mark.parametrize("text", ["Grüße\n\tzwei", "👩‍💻", "می‌خواهم", "日本語", "שלום"])
def test_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert strip_escapes(text) == text


def test_every_command_prints_by_way_of_what_cleans() -> None:
    """`click.echo` would pass on whatever a server said."""
    folder = Path(next(iter(proctor.cli.__path__)))
    allowed = {
        "escape.py",
        "completion.py",
        "environments.py",
    }  # a shell's script; a line that is written over
    found = [
        f"{file.name}:{node.lineno}"
        for file in folder.rglob("*.py")
        if file.name not in allowed
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho", "print")
    ]
    assert found == []
