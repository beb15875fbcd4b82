"""An error says that an environment variable is missing only if reading it raised the error."""

from __future__ import annotations

import os

import pytest

from proctor.errors import GraderError, find_missing_variable


def caught(work: str) -> BaseException:
    """What a piece of an author's code raises."""
    with pytest.raises(BaseException) as raised:  # noqa: PT011
        exec(work, {"os": os, "GraderError": GraderError})
    return raised.value


@pytest.mark.parametrize(
    "work",
    [
        "os.environ['NO_SUCH_KEY']",
        "try: os.environ['NO_SUCH_KEY']\nexcept KeyError as error: raise GraderError('x') from error",
        "try: os.environ['NO_SUCH_KEY']\nexcept KeyError as error: raise ExceptionGroup('all', [error])",
    ],
)
def test_a_read_of_a_missing_variable_is_found_with_its_name(work: str) -> None:
    assert find_missing_variable(caught(work)) == "NO_SUCH_KEY"


@pytest.mark.parametrize(
    "work",
    [
        "{}['NO_SUCH_KEY']",
        "raise KeyError('NO_SUCH_KEY')",
        "try: os.environ['NO_SUCH_KEY']\nexcept KeyError: raise ConnectionError('the fallback failed')",
    ],
)
def test_another_error_is_not_taken_for_a_missing_variable(work: str) -> None:
    assert find_missing_variable(caught(work)) is None
