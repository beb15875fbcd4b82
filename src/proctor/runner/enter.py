"""Run inside a sandbox, before a run's own program: read its variables from standard input, then become it.

    python3 enter.py COMMAND …

The first line is a JSON object of variables; the program finds the rest on its own standard input. Every user
of a machine can read command lines, so secrets must not be there. Self-contained, on the standard library of
any Python 3: nothing else of Proctor needs to be visible.
"""

import json
import os
import sys


def main() -> None:
    first = sys.stdin.buffer.readline()
    os.environ.update(json.loads(first))
    os.lseek(0, len(first), os.SEEK_SET)  # readline buffered more than the line
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        sys.exit(f"cannot start {sys.argv[1]}: {error.strerror}")


if __name__ == "__main__":
    main()
