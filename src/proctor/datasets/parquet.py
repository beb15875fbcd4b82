"""The rows of a Parquet file, one at a time, also of a file that is made to exhaust its reader.

Such a file is small and unpacks to very much: a page of a gigabyte of zeros, or one long text that every row
refers to. Knows nothing of what the columns mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proctor.errors import ConfigError

BATCH_ROWS = 512
NESTED_BATCH_ROWS = 32
"""Of files with lists or structs, whose texts cannot be left in a dictionary."""
BATCH_BYTES = 64 * 2**20
"""A batch whose rows could take more than this is turned into Python objects row by row."""
SUSPECT_BYTES = 256 * 2**20
SUSPECT_RATIO = 200
"""A column that unpacks to so many bytes, and so many times its stored size, is refused."""


class ParquetProblem(ValueError):  # noqa: N818
    """Why a file cannot be read further."""


def read_parquet(path: Path, longest_row_bytes: int) -> Iterator[dict[str, Any] | None]:
    """Every row in order; None for one that is too long."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError(f"Reading {path} needs pyarrow: pip install 'proctor[parquet]'.") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            check_unpacked_size(file.metadata)
            texts, is_nested = find_text_columns(file.schema_arrow)
        with pyarrow.parquet.ParquetFile(path, read_dictionary=texts) as file:
            rows = NESTED_BATCH_ROWS if is_nested else BATCH_ROWS
            for batch in file.iter_batches(batch_size=rows, use_threads=False):
                for values in convert_batch(batch):
                    yield None if measure_row(values) > longest_row_bytes else values
    except pyarrow.lib.ArrowException as error:
        raise ParquetProblem(f"this is not valid Parquet: {str(error).splitlines()[0]}") from error


def check_unpacked_size(metadata: Any) -> None:
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            unpacked, stored = column.total_uncompressed_size, column.total_compressed_size
            if unpacked > max(SUSPECT_BYTES, SUSPECT_RATIO * stored):
                raise ParquetProblem(
                    f"the column {column.path_in_schema!r} unpacks from {stored // 1024:,} KB to "
                    f"{unpacked // 2**20:,} MB, which is refused; write it in smaller row groups."
                )


def find_text_columns(schema: Any) -> tuple[list[str], bool]:
    """Columns of texts, and whether there are columns of more than one value per row."""
    import pyarrow

    texts = [field.name for field in schema if is_text(field.type)]
    return texts, any(pyarrow.types.is_nested(field.type) for field in schema)


def is_text(kind: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_string(kind) or pyarrow.types.is_binary(kind))


def convert_batch(batch: Any) -> Iterator[dict[str, Any]]:
    if batch.num_rows * measure_longest_row(batch) <= BATCH_BYTES:
        yield from batch.to_pylist()
    else:
        for number in range(batch.num_rows):
            yield from batch.slice(number, 1).to_pylist()


def measure_longest_row(batch: Any) -> int:
    """How many bytes of text a row may have at most."""
    import pyarrow
    import pyarrow.compute

    longest = 0
    for column in batch.columns:
        if pyarrow.types.is_dictionary(column.type) and is_text(column.type.value_type):
            lengths = pyarrow.compute.binary_length(column.dictionary)
            longest += pyarrow.compute.max(lengths).as_py() or 0
        elif pyarrow.types.is_nested(column.type):
            longest += column.nbytes
    return longest


def measure_row(values: dict[str, Any]) -> int:
    return sum(len(value) for value in values.values() if isinstance(value, str | bytes))
