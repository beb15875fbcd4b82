"""Write the tables that are made from the code into the pages: `make docs`.

With `--check` nothing is written, and a page whose table is old is named.
"""

from __future__ import annotations

import sys
from pathlib import Path

from proctor.checkup.codes import codes_table
from proctor.config.table import settings_table

HERE = Path(__file__).parent
TABLES = {"evaluating.md": ("settings", settings_table), "packages.md": ("codes", codes_table)}


def with_table(text: str, name: str, table: str) -> str:
    """The page with the table between its two markers."""
    begin, end = f"<!-- {name}: made by `make docs` -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{table}{end}{after}"


def main(check: bool) -> int:
    old = []
    for page, (name, table) in TABLES.items():
        text = (HERE / page).read_text(encoding="utf-8")
        current = with_table(text, name, table())
        if current != text:
            old.append(page)
            if not check:
                (HERE / page).write_text(current, encoding="utf-8")
    if check and old:
        sys.stderr.write(f"{', '.join(old)}: run `make docs`\n")
    return int(check and bool(old))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
