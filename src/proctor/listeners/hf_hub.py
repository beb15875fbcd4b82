"""Push a run to a dataset on the Hugging Face Hub, and find out beforehand whether that can work.

A dataset may hold many runs: each has its rows in `data/` and its metadata in `metadata/`, and each is a
configuration of its own, because metrics differ from run to run. A dataset that is made here is private. The
values of HTTP headers are never pushed. Knows nothing of engines or terminals.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.config.schema import EvalConfig
from proctor.errors import ConfigError, StoreError
from proctor.store.export import scan_table, write_file
from proctor.store.folder import RESULTS, read_metadata
from proctor.support.logs import log

if TYPE_CHECKING:
    from huggingface_hub import HfApi

DATASET = re.compile(r"[\w.-]+/[\w.-]+")
TRUE = frozenset({"1", "true", "yes", "on"})
CARD = "README.md"
MARK = "<!-- written by proctor; take this line out to keep your own words -->"
REDACTED = "(not pushed)"


def check_hub(config: EvalConfig) -> None:
    """Check before the first model call that the results can be pushed."""
    if not config.save_to_hf_hub:
        return
    name = config.hf_hub_dataset_name
    if name and not DATASET.fullmatch(name):
        raise ConfigError(f"-D is {name!r}, and must look like owner/name.")
    api = open_hub()
    if os.environ.get("HF_HUB_OFFLINE", "").lower() in TRUE:
        raise ConfigError("-H cannot push while HF_HUB_OFFLINE is set; unset it, or leave out -H.")
    if not api.token:
        raise ConfigError(
            "-H needs a token of the Hugging Face Hub; set HF_TOKEN, or log in with hf auth login."
        )
    try:
        api.whoami()
    except Exception as error:
        raise ConfigError(
            f"The Hugging Face Hub at {api.endpoint} does not take the token: {first_line(error)}; check "
            f"HF_TOKEN and the connection, or leave out -H."
        ) from error


def push(folder: Path, config: EvalConfig) -> str:
    """Push a finished run and return where it is; raises StoreError, and the results stay where they are."""
    name = config.hf_hub_dataset_name or default_dataset(config)
    try:
        return str(upload_run(open_hub(), folder, name))
    except Exception as error:
        raise StoreError(
            f"The results could not be pushed to the dataset {name}: {first_line(error)}; they are in "
            f"{folder}. Push them by hand with: hf upload {name} {folder / RESULTS} --repo-type dataset"
        ) from error


def default_dataset(config: EvalConfig) -> str:
    """A dataset of the account that the token belongs to, one for each environment."""
    env = re.sub(r"[^\w.-]+", "-", config.name or config.env_id).strip("-.")
    api = open_hub()
    try:
        owner = str(api.whoami()["name"])
    except Exception as error:
        raise StoreError(
            f"The Hugging Face Hub does not say whose token this is: {first_line(error)}."
        ) from error
    return f"{owner}/proctor-{env}"


def upload_run(api: HfApi, folder: Path, name: str) -> str:
    from huggingface_hub import CommitOperationAdd

    metadata = read_metadata(folder)
    run = str(metadata.get("run_id") or folder.name)
    with tempfile.TemporaryDirectory() as made:
        rows = write_rows(folder, Path(made))
        url = api.create_repo(name, repo_type="dataset", private=True, exist_ok=True)
        data = f"data/{run}{rows.suffix}"
        files: dict[str, Path | bytes] = {
            data: rows,
            f"metadata/{run}.json": msgspec.json.format(msgspec.json.encode(redact_metadata(metadata))),
        }
        if may_write_card(api, name, Path(made)):
            there = api.list_repo_files(name, repo_type="dataset")
            files[CARD] = render_card(name, metadata, {*there, data}).encode()
        api.create_commit(
            name,
            [CommitOperationAdd(path, content) for path, content in files.items()],
            commit_message=f"Run {run}: {metadata.get('env_id')} with {metadata.get('model')}",
            repo_type="dataset",
        )
    return str(url)


def open_hub() -> HfApi:
    try:
        from huggingface_hub import HfApi, get_token
    except ImportError as error:
        raise ConfigError(
            f"-H needs huggingface_hub, which is not installed ({error}); "
            f"install it with pip install 'proctor[hf]'."
        ) from error
    return HfApi(token=get_token(), library_name="proctor", library_version=version("proctor"))


def write_rows(folder: Path, made: Path) -> Path:
    """The rows as Parquet, which the Hub can show; as they are where that cannot be written."""
    try:
        write_file(scan_table(folder), "parquet", made / "rows.parquet")
    except ConfigError:
        log.info("pyarrow is not installed, so the rows are pushed as JSON lines.")
        return Path(shutil.copy(folder / RESULTS, made / "rows.jsonl"))
    return made / "rows.parquet"


def redact_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata without the values of HTTP headers, which may be keys."""
    config = dict(metadata.get("config") or {})
    config["headers"] = dict.fromkeys(config.get("headers") or {}, REDACTED)
    return {**metadata, "config": config}


def may_write_card(api: HfApi, name: str, made: Path) -> bool:
    """Whether there is no card yet, or only one of ours."""
    from huggingface_hub.errors import EntryNotFoundError

    try:
        found = api.hf_hub_download(name, CARD, repo_type="dataset", local_dir=made / "card")
    except EntryNotFoundError:
        return True
    return MARK in Path(found).read_text(encoding="utf-8")


def render_card(name: str, metadata: Mapping[str, Any], files: Iterable[str]) -> str:
    """The page of the dataset: a configuration for each run, and what the newest one was."""
    runs = sorted(Path(file) for file in files if file.startswith("data/"))
    newest = str(metadata.get("run_id"))
    configs = "\n".join(render_card_config(run, is_default=run.stem == newest) for run in runs)
    facts = {
        "environment": metadata.get("env_id"),
        "model": metadata.get("model"),
        "run": newest,
        "date": metadata.get("date"),
        "tasks × rollouts": f"{metadata.get('num_examples')} × {metadata.get('rollouts_per_example')}",
        "mean reward": metadata.get("avg_reward"),
        "status": metadata.get("status"),
    }
    table = "\n".join(f"| {fact} | {value} |" for fact, value in facts.items())
    return (
        f"---\nconfigs:\n{configs}\ntags:\n- evaluation\n- proctor\n---\n{MARK}\n\n# {name}\n\n"
        f"Rollouts of evaluations, one row each. Every run is a configuration; its settings are in "
        f"`metadata/`.\n\nThe newest run:\n\n| | |\n|---|---|\n{table}\n"
    )


def render_card_config(run: Path, is_default: bool) -> str:
    """Quoted, because the id of a run may look like a number."""
    default = "\n  default: true" if is_default else ""
    return f'- config_name: "{run.stem}"\n  data_files: "{run}"{default}'


def first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
