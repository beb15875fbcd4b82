"""Write the parts of the documentation that are generated from the code: `make docs`.

With `--check`, write nothing, name the pages that are out of date and exit with 1.
"""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import proctor
from proctor.checkup.codes import codes_table
from proctor.config.endpoint_rule import rule_table
from proctor.config.table import recipe_table, settings_table

HERE = Path(__file__).parent
SUBJECTS = {
    "proctor.evaluation.": "Evaluating",
    "proctor.task": "Tasks and results",
    "proctor.rollout": "Tasks and results",
    "proctor.store.": "Tasks and results",
    "proctor.env.graders": "Graders",
    "proctor.env.": "Environments",
    "proctor.tools": "Environments",
    "proctor.types": "Types and helpers for authors",
    "proctor.utils.": "Types and helpers for authors",
    "proctor.workflow.": "Workflows",
    "proctor.agents.": "Agents",
    "proctor.contracts": "Agents",
    "proctor.models.": "Models",
    "proctor.runtimes.": "Runtimes",
    "proctor.client.": "Sandboxes on a server",
    "proctor.errors": "Errors",
}
"""Section of the reference by the beginning of the defining module's name; the first match counts."""


def python_api() -> str:
    """Every public name under its subject: its signature, and the first paragraph of its docstring."""
    sections: dict[str, list[str]] = {subject: [] for subject in SUBJECTS.values()}
    for name in proctor.__all__:
        if name != "__version__":
            sections[subject_of(name)].append(describe(name, getattr(proctor, name)))
    return "\n".join(f"## {subject}\n\n" + "\n".join(entries) for subject, entries in sections.items())


def subject_of(name: str) -> str:
    home = proctor._HOME[name]
    return next(subject for prefix, subject in SUBJECTS.items() if home.startswith(prefix))


def describe(name: str, thing: Any) -> str:
    if isinstance(thing, (types.GenericAlias, type(Callable[..., Any]))):
        return f"### `{name}`\n\n```text\n{name} = {str(thing).replace('collections.abc.', '')}\n```\n"
    text = inspect.getdoc(thing) or inspect.getdoc(inspect.getmodule(type(thing))) or ""
    paragraph = text.split("\n\n")[0].replace("\n", " ")
    return f"### `{name}`\n\n```text\n{signature_of(name, thing)}\n```\n\n{paragraph}\n"


def signature_of(name: str, thing: Any) -> str:
    """The signature on one line, or one parameter per line where it would be longer than a page is wide."""
    if getattr(thing, "_is_protocol", False):
        return f"class {name}(Protocol)"
    if isinstance(thing, type) and issubclass(thing, Exception):
        return f"class {name}({thing.__bases__[0].__name__})"
    if isinstance(thing, type) and issubclass(thing, dict):
        return f"class {name}(dict)"
    parameters = describe_parameters(thing)
    one_line = f"{name}({', '.join(parameters)})"
    if len(one_line) <= 100:
        return one_line
    return "\n    ".join([f"{name}(", *[f"{each}," for each in parameters]]) + "\n)"


def describe_parameters(thing: Any) -> list[str]:
    written = []
    keyword_only = False
    for parameter in inspect.signature(thing).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            keyword_only = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not keyword_only:
            keyword_only = True
            written.append("*")
        written.append(describe_parameter(thing, parameter))
    return written


def describe_parameter(thing: Any, parameter: inspect.Parameter) -> str:
    stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    annotation = annotation_of(thing, parameter)
    text = f"{stars}{parameter.name}{annotation and ': '}{annotation}"
    return text if parameter.default is parameter.empty else f"{text} = {describe_default(parameter.default)}"


def annotation_of(thing: Any, parameter: inspect.Parameter) -> str:
    """The annotation as the source has it, which is the same with every version of Python."""
    if isinstance(parameter.annotation, str):
        return parameter.annotation
    for base in getattr(thing, "__mro__", ()):
        if parameter.name in vars(base).get("__annotations__", {}):
            return str(vars(base)["__annotations__"][parameter.name])
    return ""


def describe_default(default: Any) -> str:
    if callable(default):
        return str(default.__name__)
    text = repr(default)
    return "…" if len(text) > 40 or text.startswith("<") else text


GENERATED = {
    "settings.md": ("settings", settings_table),
    "packages.md": ("codes", codes_table),
    "models.md": ("rule", rule_table),
    "workflows.md": ("recipe", recipe_table),
    "python-api.md": ("reference", python_api),
}


def insert_generated(text: str, name: str, generated: str) -> str:
    """The page with the generated text between its two markers."""
    begin, end = f"<!-- {name}: made by `make docs` -->\n", f"<!-- end of {name} -->\n"
    before, _, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{begin}{generated}{end}{after}"


def main(check: bool) -> int:
    outdated = []
    for page, (name, generate) in GENERATED.items():
        text = (HERE / page).read_text(encoding="utf-8")
        current = insert_generated(text, name, generate())
        if current != text:
            outdated.append(page)
            if not check:
                (HERE / page).write_text(current, encoding="utf-8")
    if check and outdated:
        sys.stderr.write(f"{', '.join(outdated)}: out of date; run `make docs`\n")
    return int(check and bool(outdated))


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
