"""Check that a wheel and the pyproject.toml of its source agree on the package's identity and dependencies.

Installers trust the wheel, people read the source. What pyproject.toml leaves to its build backend
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
    """Reject a wheel that differs from the `project` table of its source."""
    if not isinstance(project, dict):
        raise refusal("The source's pyproject.toml has no [project] table.")
    name = project.get("name")
    if not isinstance(name, str) or canonicalize_name(name) != wheel.name:
        raise refusal(f"The source is named {name!r}, but the wheel {wheel.name!r}.")
    version = project.get("version", wheel.version)
    if not is_version(str(version), wheel.version):
        raise refusal(f"The source has version {version!r}, but the wheel {wheel.version!r}.")
    if "dependencies" not in dynamic(project):
        check_dependencies(project.get("dependencies", []), wheel.dependencies)
    if "requires-python" in project:
        check_python(project["requires-python"], wheel.requires_python)


def dynamic(project: Mapping[str, Any]) -> list[Any]:
    named = project.get("dynamic", [])
    return named if isinstance(named, list) else []


def check_dependencies(declared: Any, required: Sequence[str]) -> None:
    if not isinstance(declared, list):
        raise refusal("[project] dependencies of the source must be a list.")
    if max(len(declared), len(required)) > MOST_DEPENDENCIES:
        raise refusal(f"It names more than {MOST_DEPENDENCIES:,} dependencies; depend on less.")
    source = Counter(normal(line, "pyproject.toml") for line in declared)
    lines = (normal(line, "METADATA") for line in required)
    wheel = Counter(line for line in lines if not is_optional(line))
    for line in wheel - source:
        raise mismatch(f"The wheel's METADATA requires {quote(line)}, but pyproject.toml does not")
    for line in source - wheel:
        raise mismatch(f"pyproject.toml requires {quote(line)}, but the wheel's METADATA does not")


def normal(line: Any, where: str) -> str:
    """A requirement in canonical form."""
    try:
        requirement = Requirement(line)
    except (InvalidRequirement, TypeError, RecursionError) as error:
        raise refusal(
            f"{where} has {quote(line)} among its dependencies, which is not a valid requirement."
        ) from error
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def is_optional(line: str) -> bool:
    """Whether it is required only with an extra, whatever else its marker contains."""
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
        raise refusal(f"{quote(declared)} is not a valid specifier of Python versions.") from error
    if not agrees:
        raise mismatch(
            f"pyproject.toml requires Python {quote(declared)}, but the wheel's METADATA {quote(required)}"
        )


def quote(text: Any) -> str:
    return ascii(str(text)[:LONGEST_SHOWN])


def mismatch(difference: str) -> InvalidError:
    return InvalidError(
        f"{difference}; build the wheel from this source with `proctor env push`.", code="metadata_mismatch"
    )


def refusal(message: str) -> InvalidError:
    return InvalidError(message, code="bad_source")
