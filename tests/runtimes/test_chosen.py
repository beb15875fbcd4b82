"""Which runtime a word names."""

from __future__ import annotations

import pytest

from proctor.errors import UnknownNameError
from proctor.runtimes.resolve import resolve_provider


def test_a_word_that_names_no_runtime_is_told_all_that_can_be_written() -> None:
    with pytest.raises(UnknownNameError, match=r"'moon'.*docker.*hosted.*local.*tcp"):
        resolve_provider("moon", {})
