"""Scaffold a new environment that runs as it is: its module, its package, its tests.

The files are made from the templates beside this module, by replacing @words@ in them. Knows nothing of
models or runs.
"""

from __future__ import annotations

import importlib.util
import keyword
import re
import sys
from importlib.resources import files
from pathlib import Path

import msgspec

from proctor import plugins
from proctor.errors import ConfigError
from proctor.packages.loading import module_name
from proctor.plugins import did_you_mean

TEMPLATES = "proctor.packages.templates"
NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")


class Style(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of environment to start from."""

    title: str
    description: str
    """Name of the environment in the template."""
    scoring: str
    argument: str = ""
    value: str = ""
    extra: str = ""
    """The extras of Proctor it needs."""
    package: bool = False
    """A folder of modules rather than one file."""
    tasks: bool = False
    """A folder of tasks: env.py and tasks.py."""
    model: str = "local"
    """The model or agent to try it with."""


STYLES = {
    "single": Style(
        title="one question, one answer",
        description="Sums of two small numbers: one question, one answer.",
        scoring="`correct` (1): whether the last number in the reply is the sum. `words` is only measured.",
        argument="largest",
        value="99",
    ),
    "multi": Style(
        title="several turns, with a state of its own",
        description="Guess a number: several turns, each wrong guess is answered with higher or lower.",
        scoring="`found_it` (0.8): whether the number was found. `quickness` (0.2): more for fewer guesses.",
        argument="max_turns",
        value="3",
    ),
    "tools": Style(
        title="the model calls Python functions",
        description="A store room: the model looks things up with tools, and adds.",
        scoring="`correct` (1): whether the last number of the final reply is right.",
        argument="max_turns",
        value="3",
    ),
    "mcp": Style(
        title="the model calls tools of an MCP server",
        description="A town archive: the model looks things up in an MCP server of its own.",
        scoring="`correct` (1): whether the last number of the final reply is the year asked for.",
        argument="max_turns",
        value="3",
        extra="[mcp]",
        package=True,
    ),
    "judge": Style(
        title="a model judges the answers",
        description="Explain a word in one sentence: a judge model decides whether it is right.",
        scoring="`right` (1): the verdict of the judge, who is asked only where there is something to judge.",
        argument="judge",
        value='"openai/gpt-4.1-mini"',
        extra="[local]",
    ),
    "templates": Style(
        title="tasks for agents: templates in env.py, tasks in tasks.py",
        description="Count letters in words: templates ask and score, an agent answers.",
        scoring="1 if the answer is the right number and nothing else, 0 otherwise.",
        tasks=True,
    ),
}
DEFAULT_STYLE = "single"
FIRST_VERSION = "0.1.0"
PROJECT_FILE = "pyproject.toml"


class Scaffold(msgspec.Struct, frozen=True, kw_only=True):
    """The files to write; nothing is written yet."""

    name: str
    module: str
    folder: Path
    style: str
    files: dict[str, str]
    """Content by path within the folder."""


def plan(name: str, style: str = DEFAULT_STYLE, base: Path = Path("environments")) -> Scaffold:
    """The files of a new environment, or a ConfigError that says why it cannot be created."""
    if style not in STYLES:
        raise ConfigError(f"There is no style {style!r}{did_you_mean(style, STYLES)}")
    check_name(name)
    module = module_name(name)
    folder = base / module
    if folder.exists():
        raise ConfigError(f"{folder} already exists; choose another name, or remove it first.")
    check_free(name, module)
    return Scaffold(
        name=name, module=module, folder=folder, style=style, files=render_files(name, module, style)
    )


def write(scaffold: Scaffold) -> list[Path]:
    """Write the files, without touching any that exist."""
    try:
        scaffold.folder.parent.mkdir(parents=True, exist_ok=True)
        scaffold.folder.mkdir()
        return [write_new(scaffold.folder / path, text) for path, text in scaffold.files.items()]
    except OSError as error:
        raise ConfigError(f"Cannot write {scaffold.folder}: {error.strerror or error}.") from error


def write_new(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
    return path


def check_name(name: str) -> None:
    """Refuse a name that cannot name a module, and suggest one that can."""
    if not NAME.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be the name of an environment: use lower-case letters, digits and single "
            f"dashes, beginning with a letter; try {suggest_name(name)!r}."
        )
    if keyword.iskeyword(module_name(name)) or keyword.issoftkeyword(module_name(name)):
        raise ConfigError(f"{name!r} is a Python keyword; try {name + '-env'!r}.")


def check_free(name: str, module: str) -> None:
    """Refuse a name that is already imported or run as something else."""
    if module in sys.stdlib_module_names:
        raise ConfigError(f"{module!r} is a module of the standard library; try {name + '-env'!r}.")
    if plugins.find_entry_point(plugins.ENVIRONMENTS, name) is not None:
        raise ConfigError(f"An environment {name!r} is already registered; try {'my-' + name!r}.")
    if importlib.util.find_spec(module) is not None:
        raise ConfigError(f"A module {module!r} is already installed; try {'my-' + name!r}.")


def suggest_name(name: str) -> str:
    words = [word.lower() for word in re.findall(r"[A-Za-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1-\2", name))]
    made = "-".join(words).lstrip("0123456789-")
    return made or "my-env"


def render_files(name: str, module: str, style: str) -> dict[str, str]:
    made = STYLES[style]
    source = module if made.package else f"{module}.py"
    words = {
        "name": name,
        "module": module,
        "source": source,
        "description": made.description,
        "scoring": made.scoring,
        "argument": made.argument,
        "value": made.value,
        "extra": made.extra,
        "version": FIRST_VERSION,
    }
    if made.tasks:
        return {path: fill_template(template, words) for path, template in task_pieces(module).items()}
    pieces = {
        PROJECT_FILE: "common/pyproject.toml",
        "README.md": "common/README.md",
        f"{module}/__init__.py" if made.package else source: f"{style}/module.py",
        f"tests/test_{module}.py": f"{style}/test.py",
    }
    beside = {"mcp": {f"{module}/archive.py": "mcp/archive.py"}}
    return {
        path: fill_template(template, words) for path, template in {**pieces, **beside.get(style, {})}.items()
    }


def task_pieces(module: str) -> dict[str, str]:
    """The files of a folder of tasks, and the template of each."""
    same = {name: f"templates/{name}" for name in ("env.py", "tasks.py", PROJECT_FILE, "README.md")}
    return {**same, f"tests/test_{module}.py": "templates/test.py"}


def render_task_project(name: str, version: str, description: str) -> str:
    """The pyproject.toml of a folder of tasks that has none."""
    plain = re.sub(r'["\\\n]', " ", description)
    words = {"name": name, "module": module_name(name), "version": version, "description": plain}
    return fill_template(f"templates/{PROJECT_FILE}", words)


def fill_template(template: str, words: dict[str, str]) -> str:
    text = files(TEMPLATES).joinpath(f"{template}.in").read_text(encoding="utf-8")
    return re.sub(r"@([a-z]+)@", lambda word: words[word[1]], text)
