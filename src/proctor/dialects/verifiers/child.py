"""Load and play a verifiers environment. Runs in that environment's own Python; knows nothing of Proctor.

The framework plays and scores; only its model client is ours. A reward function that raises is reported as
such, where the framework would count 0.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

import verifiers as vf

from .client import HostClient, clean_sampling, plain_messages
from .importing import import_environment
from .scoring import is_grouped, keep_signatures, list_rubrics, record_errors, scoring_errors

CORE_STATE = frozenset(
    (
        *("prompt", "completion", "answer", "info", "example_id", "input", "task", "client", "model"),
        *("sampling_args", "trajectory", "tool_defs", "usage_tracker", "timing", "metrics", "reward"),
        *("advantage", "error", "is_completed", "is_truncated", "stop_condition", "final_env_response"),
    )
)
"""What every state holds; the rest is the environment's own."""
LARGEST_COLUMN = 100_000
"""Characters of one value of the state that is passed on."""


def load(params: dict[str, Any], host: Any) -> PlayedEnvironment:
    """Import the environment's module and make the environment, as verifiers does it."""
    module = import_environment(params)
    if not hasattr(module, "load_environment"):
        raise AttributeError(f"{getattr(module, '__file__', params['module'])} has no load_environment()")
    env = module.load_environment(**coerce_arguments(module.load_environment, params["arguments"]))
    env.env_id = getattr(env, "env_id", "") or params["env_id"]
    served = PlayedEnvironment(env, host, wants_endpoint=params["wants_endpoint"])
    if params.get("settings"):
        served.configure(params["settings"])
    if params.get("concurrency"):
        served.set_concurrency(params["concurrency"])
    return served


def coerce_arguments(loader: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """A typed `config` may be given as plain data, where this release has such a thing."""
    try:
        from verifiers.utils.env_utils import coerce_typed_env_config
    except ImportError:
        return arguments
    coerced: dict[str, Any] = coerce_typed_env_config(loader, inspect.signature(loader), arguments)
    return coerced


class PlayedEnvironment:
    """One environment, and the states of its rollouts until they are forgotten."""

    def __init__(self, env: Any, host: Any, *, wants_endpoint: bool) -> None:
        self.env = env
        self.host = host
        self.wants_endpoint = wants_endpoint
        self.dataset = env.get_eval_dataset()
        self.states: dict[int, Any] = {}
        self.members: dict[int, Any] = {}
        """The environment that plays each rollout: this one, or one of its group."""
        self._positions: dict[Any, int] | None = None
        for rubric in list_rubrics(env):
            record_errors(rubric)
        keep_signatures(env)

    def describe(self) -> dict[str, Any]:
        env = self.env
        return {
            "size": len(self.dataset),
            "version": vf.__version__,
            "grouped": is_grouped(env),
            "pass_threshold": float(getattr(env, "pass_threshold", 0.5)),
            "wants_endpoint": self.wants_endpoint,
            "sampling": clean_sampling(env.sampling_args),
            "parser": describe_parser(env),
            "details": {
                "class": f"{type(env).__module__}.{type(env).__name__}",
                "rubrics": [type(rubric).__name__ for rubric in list_rubrics(env)],
            },
        }

    # Over the control socket

    def tasks(self, start: int, stop: int) -> list[dict[str, Any]]:
        rows = self.dataset.select(range(start, stop)).to_list()
        return [self.task_of(row) for row in rows]

    def task_of(self, row: dict[str, Any]) -> dict[str, Any]:
        known = ("prompt", "answer", "info", "example_id")
        info = row.get("info") or {}
        return {
            "id": row["example_id"],
            "prompt": plain_messages(row["prompt"]),
            "answer": row.get("answer", ""),
            "info": json.loads(info) if isinstance(info, str) else info,
            "columns": {name: value for name, value in row.items() if name not in known},
        }

    def configure(self, settings: dict[str, Any]) -> None:
        if hasattr(self.env, "set_kwargs"):
            self.env.set_kwargs(**settings)
        else:
            for name, value in settings.items():
                setattr(self.env, name, value)

    def set_concurrency(self, concurrency: int) -> None:
        if hasattr(self.env, "set_concurrency"):
            self.env.set_concurrency(concurrency)

    # Over the calls socket

    async def play(
        self, session: int, task: Any, model: str, endpoint: dict[str, str] | None = None
    ) -> dict[str, Any]:
        member, row = find_member(self.env, self.dataset[self.position(task)])
        client = HostClient(self.host, session, endpoint)
        self.members[session] = member
        state = await member.rollout(row, client, model, dict(self.env.sampling_args))
        self.states[session] = state
        error = state.get("error")
        return {
            "prompt": plain_messages(state["prompt"]),
            "completion": plain_messages(state.get("completion") or []),
            "stop_condition": state.get("stop_condition"),
            "truncated": bool(state.get("is_truncated")),
            "error": None if error is None else describe_cause(error),
            "too_long": bool(state.get("prompt_too_long")),
        }

    async def score(self, session: int) -> dict[str, Any]:
        return (await self.score_group([session]))[0]

    async def score_group(self, sessions: list[int]) -> list[dict[str, Any]]:
        """As the framework evaluates: its `score_rollout` refuses a rubric without functions."""
        states, member = [self.states[session] for session in sessions], self.members[sessions[0]]
        scoring_errors.set([])
        if getattr(member, "score_rollouts", True):
            await member.rubric.score_group(states)
        else:
            await member.rubric.dummy_score_group(states)
        return [self.describe_score(state) for state in states]

    async def forget(self, session: int) -> None:
        state, member = self.states.pop(session, None), self.members.pop(session, None)
        if state is not None and member is not None and hasattr(member.rubric, "cleanup"):
            await member.rubric.cleanup(state)

    async def close(self) -> None:
        teardown = getattr(self.env, "_teardown", None)
        if teardown is not None:
            await teardown()

    def position(self, task: Any) -> int:
        """Where the dataset holds the task with this id."""
        if self._positions is None:
            self._positions = {each: number for number, each in enumerate(self.dataset["example_id"])}
        return self._positions[task]

    def describe_score(self, state: Any) -> dict[str, Any]:
        failed = [each for each in scoring_errors.get() if each[0] in (None, id(state))]
        if failed:
            _, error, name = failed[0]
            return {"error": {**describe_cause(error), "message": f"{error} in reward function {name!r}"}}
        metrics = {name: float(value) for name, value in (state.get("metrics") or {}).items()}
        return {"reward": state["reward"], "metrics": metrics, "state": plain_state(state)}


def describe_parser(env: Any) -> dict[str, Any] | None:
    """The form that answers must have, of this environment or the first of its group that wants one."""
    for each in (env, *getattr(env, "envs", ())):
        parser: Any = getattr(each, "parser", None)
        kinds = {kind.__name__ for kind in type(parser).__mro__}
        if "XMLParser" in kinds:
            fields = [list(names) for _, names in parser._fields]
            return {"kind": "xml", "fields": fields, "answer_field": parser.answer_field}
        if "ThinkParser" in kinds:
            return {"kind": "think"}
    return None


def find_member(env: Any, row: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The environment of a group that a row belongs to, at any depth, and the row as that one takes it."""
    while hasattr(env, "_route_child_input"):
        name, row, _ = env._route_child_input(row)
        env = env.get_env_for_name(name)
    return env, row


def plain_state(state: Any) -> dict[str, Any]:
    """The environment's own part of a state, as far as JSON can hold it."""
    found: dict[str, Any] = {}
    for name, value in state.items():
        if name in CORE_STATE or not isinstance(name, str):
            continue
        try:
            text = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            continue
        if len(text) <= LARGEST_COLUMN:
            found[name] = value
    return found


def describe_cause(error: Any) -> dict[str, Any]:
    """An error that the framework kept in a state; one of the model is not the environment's."""
    if isinstance(error, dict):
        return {"type": str(error.get("error")), "message": str(error.get("error_chain_str", ""))}
    import proctor_inside  # type: ignore[import-not-found]

    return {**proctor_inside.describe_error(error), "is_model": isinstance(error, vf.ModelError)}
