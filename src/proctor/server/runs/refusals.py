"""What is wrong with a request for a run: raised at once where the run is to be started, collected where it
is only checked, so that one validation serves both.

Knows nothing of HTTP or of what is validated.
"""

from __future__ import annotations

from collections.abc import Mapping

from proctor.api.field_problems import MOST_PROBLEMS
from proctor.api.runs import RunProblem
from proctor.errors import ConfigError
from proctor.server.problems import ApiError, InvalidError

INNER_FIELDS: Mapping[str, str] = {
    "api_base_url": "settings.api_base_url",
    "version": "environment",
}
"""Fields as a step names them, and where they are in a request."""


class Refusals:
    """Refusals of the steps of a validation; by default, the first one is raised."""

    def __init__(self, *, collects: bool = False) -> None:
        self._collects = collects
        self.problems: list[RunProblem] = []

    def at(self, field: str = "") -> ValidationStep:
        """A step whose refusal belongs to a field, unless it names one itself."""
        return ValidationStep(self, field)

    def take(self, error: ApiError | ConfigError, field: str) -> bool:
        """Whether the validation continues after a refusal."""
        if self._collects:
            self.add(list_problems(as_api_error(error), field))
        return self._collects

    def add(self, found: list[RunProblem]) -> None:
        """Only the first problem of a field, since the second usually follows from it, and not hundreds."""
        if len(self.problems) >= MOST_PROBLEMS:
            return
        known = {problem.field for problem in self.problems if problem.field}
        self.problems += [problem for problem in found if problem.field not in known]


class ValidationStep:
    """A step, as a context; a class of its own because type checkers then know that it may end early."""

    def __init__(self, refusals: Refusals, field: str) -> None:
        self._refusals = refusals
        self._field = field

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: object) -> bool:
        return isinstance(error, (ApiError, ConfigError)) and self._refusals.take(error, self._field)


def list_problems(error: ApiError, field: str) -> list[RunProblem]:
    """A refusal as problems, one for each field that it names."""
    if named := error.details.get("problems"):
        return [RunProblem(field=each["field"], code=error.code, message=each["message"]) for each in named]
    if lacking := error.details.get("names"):
        return [RunProblem(field=f"{field}.{name}", code=error.code, message=str(error)) for name in lacking]
    own = error.details.get("field", field)
    return [RunProblem(field=INNER_FIELDS.get(own, own), code=error.code, message=str(error))]


def as_api_error(error: ApiError | ConfigError) -> ApiError:
    return error if isinstance(error, ApiError) else InvalidError(str(error))
