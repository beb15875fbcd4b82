"""What is kept of somebody who prints without end."""

from __future__ import annotations

from proctor.runner.excerpt import Excerpt


def test_a_short_text_is_kept_whole() -> None:
    said = Excerpt()
    lines = [str(number) for number in range(2_200)]
    for line in lines:
        said.add(line)
    assert said.lines == lines
    assert said.take() == lines
    assert said.lines == []


def test_of_an_endless_one_the_beginning_and_the_end_are_kept_and_it_says_what_is_missing() -> None:
    said = Excerpt()
    for number in range(100_000):
        said.add(str(number))
    lines = said.lines
    assert (lines[:200], lines[201:]) == (
        [str(number) for number in range(200)],
        [str(number) for number in range(98_000, 100_000)],
    )
    assert lines[200] == "… 97,800 lines omitted"
