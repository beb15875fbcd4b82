"""Run inside a sandbox, before a run's own program: take its variables from standard input, become it.

    python3 entering.py COMMAND …

The first line is a JSON object of variables; the program finds the rest on its own standard input. Command
lines can be read by everybody on a machine, secrets must not be. Stands alone, on the standard
library of any Python 3: nothing else of Proctor need be seen there.
"""

import json
import os
import sys


def main() -> None:
    first = sys.stdin.buffer.readline()
    os.environ.update(json.loads(first))
    os.lseek(0, len(first), os.SEEK_SET)  # more than a line was read ahead
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        sys.exit(f"{sys.argv[1]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
