"""How long the fields of a request may be. Every text, list and object in one has a bound from here.

What people write is short; what programs write has more room, and a limit. A field that exceeds its bound is
rejected by name, with 422, before anything is looked up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta

KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE

LONGEST_NAME = 200
LONGEST_CAUSE = 64 * KILOBYTE
LARGEST_SETTINGS = 64 * KILOBYTE
LARGEST_METADATA = 2 * MEGABYTE

Name = Annotated[str, Meta(max_length=LONGEST_NAME)]
"""Of people, runs, models, environments, hosts; ids and versions as well."""
Sentence = Annotated[str, Meta(max_length=1_000)]
"""A reason, a note."""
Paragraph = Annotated[str, Meta(max_length=2_000)]
"""A description, which lists repeat."""
ProgramText = Annotated[str, Meta(max_length=LONGEST_CAUSE)]
"""A program's own text: an error, the cause of an end."""
LogExcerpt = Annotated[str, Meta(max_length=256 * KILOBYTE)]
TaskText = Annotated[str, Meta(max_length=4 * KILOBYTE)]
"""The slug of a task, or how its prompt begins."""

VariableName = Annotated[str, Meta(max_length=300)]
VariableValue = Annotated[str, Meta(max_length=128 * KILOBYTE)]
"""As much as the kernel accepts; a stored secret may have less."""
Variables = Annotated[Mapping[VariableName, VariableValue], Meta(max_length=1_000)]
Word = Annotated[str, Meta(max_length=128 * KILOBYTE)]
"""Of a command."""
Words = Annotated[list[Word], Meta(max_length=1_000)]
FileContent = Annotated[str, Meta(max_length=4 * MEGABYTE)]
FilePath = Annotated[str, Meta(max_length=4_096)]
Files = Annotated[Mapping[FilePath, FileContent], Meta(max_length=1_000)]

# Free-form objects are bounded by their size as JSON; the server checks `most_bytes`.

MOST_BYTES = "most_bytes"
SettingsTable = Annotated[Mapping[str, Any], Meta(max_length=1_000, extra={MOST_BYTES: LARGEST_SETTINGS})]
MetadataTable = Annotated[Mapping[str, Any], Meta(max_length=1_000, extra={MOST_BYTES: LARGEST_METADATA})]
FactsTable = Annotated[Mapping[str, Any], Meta(max_length=100, extra={MOST_BYTES: 16 * KILOBYTE})]

# Reports

MOST_LOG_LINES = 2_000
MOST_LOG_BYTES = 4 * MEGABYTE
MOST_ROWS = 1_000
LONGEST_LOG_LINE = 64 * KILOBYTE
LogLine = Annotated[str, Meta(max_length=LONGEST_LOG_LINE)]
