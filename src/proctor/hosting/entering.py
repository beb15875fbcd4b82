"""Run inside a sandbox, before a run's own program: take its variables from standard input, become it.

    python3 entering.py COMMAND …

Command lines can be read by everybody on a machine, secrets must not be. Stands alone, on the standard
library of any Python 3: nothing else of Proctor need be seen there.
"""

import json
import os
import sys


def main() -> None:
    os.environ.update(json.load(sys.stdin.buffer))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        os.execvp(sys.argv[1], sys.argv[1:])
    except OSError as error:
        sys.exit(f"{sys.argv[1]} cannot be started: {error.strerror}")


if __name__ == "__main__":
    main()
