"""A recipe: one TOML file that says which rollout is evaluated with which model on which rows.

    [experiment]
    rollout = "my-rollout"
    entrypoint = "main.py"
    model_path = "openai/gpt-5-mini"
    dataset = "my-dataset"

    [evaluation]
    limit = 200

The same file means the same here and on a server. Everything that is wrong with it is reported at once, with
its line. Knows nothing of repositories, datasets or runs: it turns a file into one value.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, get_args, get_type_hints

import msgspec

from proctor.config.fields import describe_type, read_fields, to_json_value
from proctor.config.hosted import HOSTED_SETTINGS
from proctor.config.schema import setting
from proctor.config.toml_file import FileProblems, KeyPath, TomlFile, describe_value, read_toml
from proctor.errors import did_you_mean
from proctor.task import canonical_bytes

ALL = "all"
SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
DATASET = re.compile(rf"(?:{SEGMENT.pattern}/)?{SEGMENT.pattern}(?:@[0-9a-f]{{8,64}})?")
COMMIT = re.compile(r"[0-9a-fA-F]{7,40}")
ENV_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")
SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
RESERVED_PREFIXES = ("PROCTOR_", "_PROCTOR_", "_OSMOSIS_")


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """What is evaluated: `[experiment]`."""

    rollout: Annotated[str, setting("Folder of the rollout under `rollouts/`.")]
    entrypoint: Annotated[str, setting("Its Python file with the workflow and the grader, or a server.")]
    model_path: Annotated[str, setting("Model, as LiteLLM spells it, or an alias in the endpoint registry.")]
    dataset: Annotated[
        str,
        setting("Dataset: a file in `data/` or one of yours on a server by its name, or `owner/name@hash`."),
    ]
    branch: Annotated[str | None, setting("On a server: the branch to take the code from.")] = None
    commit_sha: Annotated[
        str | None, setting("On a server: the commit to take the code from, instead of a branch.")
    ] = None


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """How it is evaluated: `[evaluation]`."""

    limit: Annotated[
        int | Literal["all"] | None,
        setting('Rows: the first N, or `"all"`. Default: a random 10%, at least one row.'),
    ] = None
    seed: Annotated[int, setting("Seed of the random 10%.")] = 0
    n: Annotated[int, setting("Attempts per row.")] = 1
    batch_size: Annotated[int, setting("Rows in flight at once.")] = 1
    pass_threshold: Annotated[float, setting("Reward from which an attempt counts as passed.")] = 1.0
    agent_workflow_timeout_s: Annotated[float, setting("Seconds one run of the workflow may take.")] = 450.0
    grader_timeout_s: Annotated[float, setting("Seconds the grading of one attempt may take.")] = 150.0


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """A requested evaluation of a rollout: what a local run plays and what a server is sent."""

    experiment: Experiment
    evaluation: Evaluation = Evaluation()
    env: dict[str, str] = {}
    """Variables of the rollout's process."""
    secrets: tuple[str, ...] = ()
    """Names of variables whose values are in no file."""
    advanced: dict[str, Any] = {}
    """Further settings of an evaluation, by their names."""

    @property
    def hash(self) -> str:
        """The same for every run of this recipe, whatever commit its code is taken from."""
        built = msgspec.to_builtins(self)
        for name in ("branch", "commit_sha"):
            built["experiment"].pop(name)
        return hashlib.sha256(canonical_bytes(built)).hexdigest()[:16]


class RecipeFile(msgspec.Struct, frozen=True):
    """A recipe, and the file it was read from."""

    file: TomlFile
    recipe: Recipe

    @property
    def path(self) -> Path:
        return self.file.path

    def locate(self, *where: str) -> str:
        """Where a value stands, as file:line."""
        return self.file.locate(where)


SECTIONS = ("experiment", "evaluation", "env", "secrets", "advanced")
MEANT_IN_EVALUATION = {
    "num_examples": "limit",
    "rollouts_per_example": "n",
    "max_concurrent": "batch_size",
    "max_concurrent_generation": "batch_size",
    "timeout": "agent_workflow_timeout_s",
    "scoring_timeout": "grader_timeout_s",
    "pass_threshold": "pass_threshold",
    "seed": "seed",
}
"""Settings that a recipe has other names for."""
ADVANCED_SETTINGS = HOSTED_SETTINGS - {
    *MEANT_IN_EVALUATION,
    *("env_args", "extra_env_kwargs", "task_ids", "shuffle", "agent", "agent_args", "max_steps"),
    *("max_concurrent_scoring", "independent_scoring", "no_interleave_scoring", "label", "config_hash"),
}


def is_recipe(file: TomlFile) -> bool:
    """Whether a TOML file is meant as a recipe, rather than as a suite."""
    return any(isinstance(file.data.get(name), dict) for name in SECTIONS)


def read_recipe(path: Path) -> RecipeFile:
    """Read a recipe; any mistake rejects the whole file."""
    return parse_recipe(read_toml(path))


def parse_recipe(file: TomlFile) -> RecipeFile:
    findings = FileProblems(file)
    tables = read_sections(file, findings)
    experiment = read_struct(tables.get("experiment", {}), "experiment", Experiment, findings)
    evaluation = read_struct(tables.get("evaluation", {}), "evaluation", Evaluation, findings)
    check_code_version(experiment, findings)
    env = read_env(tables.get("env", {}), findings)
    secrets = read_secrets(tables.get("secrets", {}), env, findings)
    advanced = read_advanced(tables.get("advanced", {}), findings)
    findings.raise_any()
    recipe = Recipe(
        experiment=Experiment(**experiment),
        evaluation=Evaluation(**evaluation),
        env=env,
        secrets=secrets,
        advanced=advanced,
    )
    return RecipeFile(file, recipe)


def read_sections(file: TomlFile, findings: FileProblems) -> dict[str, dict[str, Any]]:
    tables = {}
    for name, value in file.data.items():
        if name not in SECTIONS:
            findings.add((name,), f"unknown section [{name}]{did_you_mean(name, SECTIONS)}")
        elif not isinstance(value, dict):
            findings.add((name,), f"{name!r} must be a table; write [{name}].")
        else:
            tables[name] = value
    if "experiment" not in file.data:
        findings.add((), "this recipe has no [experiment] section.")
    return tables


def read_struct(
    table: Mapping[str, Any], section: str, schema: type[msgspec.Struct], findings: FileProblems
) -> dict[str, Any]:
    """The fields of a section, each of the right kind and in range."""
    hints = get_type_hints(schema, include_extras=True)
    values = {}
    for name, raw in table.items():
        key_path = (section, name)
        if name not in hints:
            findings.add(key_path, f"[{section}] has no field {name!r}{did_you_mean(name, hints)}")
        else:
            values[name] = read_field(raw, hints[name], key_path, findings)
    if section in findings.file.data:
        for field in msgspec.structs.fields(schema):
            if field.required and field.name not in table:
                findings.add((section,), f"[{section}] has no {field.name!r}.")
    return values


def read_field(raw: Any, annotation: Any, key_path: KeyPath, findings: FileProblems) -> Any:
    name = str(key_path[-1])
    before = findings.count
    value = to_json_value(raw, key_path, findings)
    if findings.count > before:
        return None
    kind = get_args(annotation)[0]
    if isinstance(value, bool) or not is_of_kind(value, kind):
        described = 'a number of rows or "all"' if name == "limit" else describe_type(annotation)
        findings.add(key_path, f"{name!r} must be {described}, not {describe_value(raw)}.")
        return None
    problem = describe_problem(name, value)
    if problem is not None:
        findings.add(key_path, f"{name!r} {problem}")
    return float(value) if kind is float else value


def is_of_kind(value: Any, kind: Any) -> bool:
    try:
        return value is not None and msgspec.convert(value, kind) is not None
    except msgspec.ValidationError:
        return False


def describe_problem(name: str, value: Any) -> str | None:
    """Why a well-typed value means nothing, as the rest of a sentence."""
    if isinstance(value, str):
        return TEXT_RULES[name](value) if value.strip() else "is empty."
    if name in ("n", "batch_size", "limit") and value < 1:
        return f"is {value}, and must be at least 1."
    if name.endswith("_timeout_s") and value <= 0:
        return f"is {value:g}, and must be more than 0 seconds."
    return None if math.isfinite(value) else f"is {value}, and must be a finite number."


def check_segment(value: str) -> str | None:
    if SEGMENT.fullmatch(value):
        return None
    return f"is {value!r}, and must be the name of a folder in rollouts/, without slashes."


def check_entrypoint(value: str) -> str | None:
    path = PurePosixPath(value)
    if path.is_absolute() or ".." in path.parts or "\\" in value:
        return f"is {value!r}, and must be a file inside the rollout's folder."
    return None if path.suffix == ".py" else f"is {value!r}, and must be a Python file, such as 'main.py'."


def check_no_spaces(value: str) -> str | None:
    return f"is {value!r}, and must not contain spaces." if any(map(str.isspace, value)) else None


def check_dataset(value: str) -> str | None:
    if DATASET.fullmatch(value):
        return None
    return f"is {value!r}, and must be a name, or 'owner/name@hash' on a server."


def check_commit(value: str) -> str | None:
    return None if COMMIT.fullmatch(value) else f"is {value!r}, and must be 7 to 40 hexadecimal digits."


def accept(_: str) -> None:
    return None


TEXT_RULES: dict[str, Callable[[str], str | None]] = {
    "rollout": check_segment,
    "entrypoint": check_entrypoint,
    "model_path": check_no_spaces,
    "dataset": check_dataset,
    "branch": check_no_spaces,
    "commit_sha": check_commit,
    "limit": accept,
}


def check_code_version(experiment: Mapping[str, Any], findings: FileProblems) -> None:
    if experiment.get("branch") and experiment.get("commit_sha"):
        text = "'branch' and 'commit_sha' exclude each other; a commit is on its branch already."
        findings.add(("experiment", "commit_sha"), text)


def read_env(table: Mapping[str, Any], findings: FileProblems) -> dict[str, str]:
    for name, value in table.items():
        key_path = ("env", name)
        if not ENV_NAME.fullmatch(name):
            findings.add(key_path, f"{name!r} cannot be a variable; use capital letters, digits and '_'.")
        elif name.startswith(RESERVED_PREFIXES):
            findings.add(key_path, f"{name!r} is reserved; choose a name without that prefix.")
        if not isinstance(value, str):
            text = f"{name!r} must be a text, not {describe_value(value)}; write it in quotation marks."
            findings.add(key_path, text)
        elif "\0" in value:
            findings.add(key_path, f"{name!r} contains a NUL character, which a variable cannot hold.")
    return dict(table)


def read_secrets(table: Mapping[str, Any], env: Mapping[str, str], findings: FileProblems) -> tuple[str, ...]:
    for name in table:
        if name != "required":  # not repeated: it may be a secret that was put here
            findings.add(("secrets", name), '[secrets] has one field: required = ["NAME", …]; no values.')
    names = table.get("required", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        findings.add(("secrets", "required"), "'required' must be a list of names of variables.")
        return ()
    for number, name in enumerate(names):
        key_path = ("secrets", "required", number)
        if not SECRET_NAME.fullmatch(name):
            findings.add(key_path, "'required' must hold names of variables, in capital letters; no values.")
        elif name in names[:number]:
            findings.add(key_path, f"{name!r} is required twice.")
        elif name in env:
            findings.add(key_path, f"{name!r} is in [env] too; a secret does not belong into a file.")
    return tuple(names)


def read_advanced(table: Mapping[str, Any], findings: FileProblems) -> dict[str, Any]:
    """Settings of an evaluation that a recipe has no section for, checked as everywhere."""
    read = read_fields(table, ("advanced",), findings)
    for name, key_path in read.key_paths.items():
        if name in MEANT_IN_EVALUATION:
            findings.add(key_path, f"{key_path[-1]!r} is {MEANT_IN_EVALUATION[name]!r} in [evaluation].")
        elif name not in ADVANCED_SETTINGS:
            findings.add(key_path, f"{key_path[-1]!r} has no meaning for a rollout; leave it out.")
    return read.values
