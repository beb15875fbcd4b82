"""Arguments → the folders of the runs they name, for commands that take any number of runs.

Runs on a server are downloaded first, with their labels unless they were shared by link. Knows nothing of
what is done with them.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from proctor.cli.commands.hosted_export import download_run
from proctor.cli.commands.labelled_runs import download_labelled_run
from proctor.cli.views.escape import echo
from proctor.client.runs import is_run_id, parse_link
from proctor.errors import ConfigError
from proctor.store.folder import RESULTS
from proctor.store.index import (
    DAMAGED,
    expand_path,
    find_run,
    is_run_folder,
    list_runs_below,
    read_run,
    run_folders,
    search_folders,
)
from proctor.store.query import is_export


def locate_runs(words: Sequence[str], dirs: Sequence[str], stack: ExitStack) -> tuple[list[Path], list[Path]]:
    """The folders of runs, and the exported files, that the words name; each once."""
    if not words:
        return leave_out_damaged(run_folders(search_folders(dirs))), []
    folders: list[Path] = []
    exports: list[Path] = []
    for word in words:
        path = expand_path(word)
        if is_export(path):
            exports.append(path)
        elif path.is_dir() and not is_run_folder(path):
            found = sorted(list_runs_below(path))
            if not found:
                raise ConfigError(f"No runs in {word}; name the folder of a run, or one that holds runs.")
            folders += leave_out_damaged(found)
        elif is_run_id(word):
            download = download_run if parse_link(word) else download_labelled_run
            folders.append(stack.enter_context(download(word)))
        else:
            folders.append(find_run(word, search_folders(dirs)))
    distinct = {folder.resolve(): folder for folder in folders}
    return list(distinct.values()), list(dict.fromkeys(exports))


def leave_out_damaged(folders: Sequence[Path]) -> list[Path]:
    """The runs that can be read; stderr says how many cannot."""
    whole = [
        folder for folder in folders if read_run(folder).status != DAMAGED and (folder / RESULTS).is_file()
    ]
    if count := len(folders) - len(whole):
        echo(f"Left out {count:,} damaged {'run' if count == 1 else 'runs'}; see `proctor jobs`.", err=True)
    return whole
