"""Whether a wheel and the pyproject.toml of its source say the same: whose it is, and what it depends on.

Installers believe the wheel, people read the source. What pyproject.toml leaves to its build backend
(`dynamic`) cannot be compared; the content hash covers it. Knows nothing of archives.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from proctor.server.hub.wheels import Wheel, is_version
from proctor.server.problems import InvalidError

ONLY_WITH_EXTRA = re.compile(r'(?:(?P<rest>.*) and )?extra == "[A-Za-z0-9._-]+"')
IN_BRACKETS = re.compile(r"\([^()]*\)")
LONGEST_SHOWN = 200
MOST_DEPENDENCIES = 1_000


def check_project(project: Any, wheel: Wheel) -> None:
    """Refuse a wheel that is not what the `project` table of its source describes."""
    if not isinstance(project, dict):
        raise refusal("The source's pyproject.toml has no [project] table.")
    name = project.get("name")
    if not isinstance(name, str) or canonicalize_name(name) != wheel.name:
        raise refusal(f"The source is of {name!r}, the wheel of {wheel.name!r}.")
    version = project.get("version", wheel.version)
    if not is_version(str(version), wheel.version):
        raise refusal(f"The source is of version {version!r}, the wheel of {wheel.version!r}.")
    if "dependencies" not in dynamic(project):
        check_dependencies(project.get("dependencies", []), wheel.dependencies)
    if "requires-python" in project:
        check_python(project["requires-python"], wheel.requires_python)


def dynamic(project: Mapping[str, Any]) -> list[Any]:
    named = project.get("dynamic", [])
    return named if isinstance(named, list) else []


def check_dependencies(declared: Any, required: Sequence[str]) -> None:
    if not isinstance(declared, list):
        raise refusal("[project] dependencies of the source should be a list.")
    if max(len(declared), len(required)) > MOST_DEPENDENCIES:
        raise refusal(f"It names more than {MOST_DEPENDENCIES:,} dependencies; let it need less.")
    source = Counter(normal(line, "pyproject.toml") for line in declared)
    lines = (normal(line, "METADATA") for line in required)
    wheel = Counter(line for line in lines if not is_optional(line))
    for line in wheel - source:
        raise mismatch(f"The wheel's METADATA requires {shown(line)}, and pyproject.toml does not")
    for line in source - wheel:
        raise mismatch(f"pyproject.toml requires {shown(line)}, and the wheel's METADATA does not")


def normal(line: Any, where: str) -> str:
    """A requirement in the one spelling."""
    try:
        requirement = Requirement(line)
    except (InvalidRequirement, TypeError, RecursionError) as error:
        raise refusal(f"{where} has {shown(line)} among its dependencies, which is not one.") from error
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def is_optional(line: str) -> bool:
    """Whether it is required only along with an extra, whatever else its marker says."""
    found = ONLY_WITH_EXTRA.fullmatch(str(Requirement(line).marker or ""))
    if found is None:
        return False
    rest, inner = found["rest"] or "", ""
    while rest != inner:
        rest, inner = IN_BRACKETS.sub("", rest), rest
    return " or " not in rest


def check_python(declared: Any, required: str) -> None:
    try:
        agrees = SpecifierSet(str(declared)) == SpecifierSet(required)
    except InvalidSpecifier as error:
        raise refusal(f"{shown(declared)} does not say which versions of Python it needs.") from error
    if not agrees:
        raise mismatch(
            f"pyproject.toml needs Python {shown(declared)}, the wheel's METADATA {shown(required)}"
        )


def shown(text: Any) -> str:
    return ascii(str(text)[:LONGEST_SHOWN])


def mismatch(difference: str) -> InvalidError:
    return InvalidError(
        f"{difference}; build the wheel from this source with `proctor env push`.", code="metadata_mismatch"
    )


def refusal(message: str) -> InvalidError:
    return InvalidError(message, code="bad_source")
