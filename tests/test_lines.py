"""Output that is split into lines."""

from __future__ import annotations

from proctor.support.lines import LONGEST_LINE, LineSplitter


def test_lines_are_whole_however_they_arrive() -> None:
    splitter = LineSplitter()
    fed = [splitter.feed(chunk) for chunk in (b"on", b"e\r\ntwo\n\nth", b"ree")]
    assert fed == [[], ["one", "two"], []]
    assert splitter.finish() == ["three"]
    assert splitter.finish() == []


def test_a_line_without_end_takes_bounded_memory_and_is_marked() -> None:
    splitter = LineSplitter()
    for _ in range(100):
        assert splitter.feed(b"word " * 1_000) == []
    (line,) = splitter.feed(b"\nnext")
    assert len(line) <= LONGEST_LINE + 50
    assert line.endswith("more bytes cut)")
    assert splitter.finish() == ["next"]


def test_half_a_secret_is_not_left_at_the_cut() -> None:
    secret = b"sk-0123456789"
    (line,) = LineSplitter().feed(b"a" * (LONGEST_LINE - 6) + b" " + secret + b" more\n")
    assert "sk-" not in line
