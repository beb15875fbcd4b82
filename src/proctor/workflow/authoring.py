"""What an author writes: a workflow that does the work, and a grader that rates it.

    class Solve(AgentWorkflow):
        async def run(self, ctx):
            client = AsyncOpenAI(base_url=ctx.chat_completions_url, api_key=ctx.api_key)
            await client.chat.completions.create(model=ctx.model, messages=ctx.prompt)

    class Check(Grader):
        async def grade(self, ctx):
            ctx.set_reward(1.0 if ctx.sample.text.strip() == ctx.label else 0.0)

Both may be plain functions instead of coroutines. Knows nothing of engines, files or models.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NoReturn, TypeVar

from proctor.errors import ExcludedError

ConfigT = TypeVar("ConfigT")

Messages = list[dict[str, Any]]
"""As the chat completions API spells them."""


@dataclass(kw_only=True)
class AgentWorkflowOutput:
    """What a workflow did: its messages, and numbers of its own."""

    messages: Messages | None = None
    """The conversation; without one, the recorded calls of the model are the sample."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Saved with the row, and averaged in the report."""

    def __post_init__(self) -> None:
        for name, value in self.metrics.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ValueError(f"metric {name!r} is {value!r}; it must be a finite number")


@dataclass(kw_only=True)
class RolloutSample:
    """What a grader scores."""

    messages: Messages
    """The whole conversation."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the workflow."""
    remove_sample: bool = False
    """Set it to leave this attempt out of every number, as `ctx.skip()` does."""

    @property
    def text(self) -> str:
        """What the last message of the assistant says."""
        answers = [each for each in self.messages if each.get("role") == "assistant"]
        content = answers[-1].get("content") if answers else ""
        if isinstance(content, list):
            return "".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))
        return content or ""


class Skippable:
    """Lets a workflow or a grader leave an attempt out of every number."""

    skipped: str | None = None
    """Why, once it did."""

    def skip(self, reason: str) -> NoReturn:
        """End this attempt with the outcome `excluded`."""
        self.skipped = reason
        raise ExcludedError(reason)


@dataclass(kw_only=True)
class AgentWorkflowContext(Skippable, Generic[ConfigT]):
    """All that a workflow gets for one attempt at one row."""

    prompt: Messages
    """The system prompt, if there is one, and the user's."""
    metadata: dict[str, Any]
    config: ConfigT | None
    """The `config` of the class."""
    artifacts_dir: Path
    """A folder for files; kept with the results."""
    project_path: Path
    """The rollout's folder."""
    chat_completions_url: str
    """Base URL of the evaluated model, for any client of the chat completions API."""
    api_key: str
    """The key there; valid for this attempt alone."""
    model: str
    """The model's name; any other name is answered by the same model."""
    rollout_id: str


@dataclass(kw_only=True)
class GraderContext(Skippable, Generic[ConfigT]):
    """All that a grader gets for one attempt at one row."""

    label: Any
    """The row's `ground_truth` or `label`."""
    sample: RolloutSample
    prompt: Messages
    metadata: dict[str, Any]
    config: ConfigT | None
    artifacts_dir: Path
    """The folder that the workflow wrote to."""
    project_path: Path
    reward: float | None = None
    metrics: dict[str, float] = field(default_factory=dict)

    def set_reward(self, reward: float) -> None:
        """Rate the attempt; the last call counts."""
        self.reward = reward

    def set_metric(self, name: str, value: float) -> None:
        """Save a number beside the reward."""
        self.metrics[name] = value


class AgentWorkflow(ABC, Generic[ConfigT]):
    """Does the work of one row. A new object is made for each attempt."""

    config: ConfigT | None = None

    @abstractmethod
    def run(
        self, ctx: AgentWorkflowContext[ConfigT]
    ) -> AgentWorkflowOutput | Messages | Awaitable[AgentWorkflowOutput | Messages | None] | None:
        """Work, and return the messages, an output with metrics, or nothing."""


class Grader(ABC, Generic[ConfigT]):
    """Scores what a workflow did. A new object is made for each attempt."""

    config: ConfigT | None = None

    @abstractmethod
    def grade(self, ctx: GraderContext[ConfigT]) -> Any:
        """Call `ctx.set_reward()`, or `ctx.skip()`."""
