"""Proctor evaluates models and agents on environments, and tells you whether to believe the number.

Everything an author or a script needs is importable from here, and loaded when it is first named.
"""

from __future__ import annotations

TYPE_CHECKING = False

__version__ = "0.1.0"

if TYPE_CHECKING:  # the module of that name takes longer to import than all of this
    from typing import Any

    from proctor.agents.command import Command as Command
    from proctor.agents.resolve import create_agent as create_agent
    from proctor.agents.tool_loop import ToolLoop as ToolLoop
    from proctor.client.sandboxes import instance as instance
    from proctor.client.sandboxes import sandbox as sandbox
    from proctor.contracts import Desk as Desk
    from proctor.env.capability import Capability as Capability
    from proctor.env.echo import EchoEnvironment as EchoEnvironment
    from proctor.env.graders import all_of as all_of
    from proctor.env.graders import any_of as any_of
    from proctor.env.graders import combine as combine
    from proctor.env.graders import contains as contains
    from proctor.env.graders import contains_all as contains_all
    from proctor.env.graders import contains_any as contains_any
    from proctor.env.graders import exact as exact
    from proctor.env.graders import f1 as f1
    from proctor.env.graders import numeric as numeric
    from proctor.env.graders import part as part
    from proctor.env.graders import shell as shell
    from proctor.env.group import EnvGroup as EnvGroup
    from proctor.env.hooks import cleanup as cleanup
    from proctor.env.hooks import stop as stop
    from proctor.env.hooks import teardown as teardown
    from proctor.env.judge import JudgeRubric as JudgeRubric
    from proctor.env.math_rubric import MathRubric as MathRubric
    from proctor.env.mcp_env import McpEnv as McpEnv
    from proctor.env.multi_turn import MultiTurnEnv as MultiTurnEnv
    from proctor.env.multi_turn import SingleTurnEnv as SingleTurnEnv
    from proctor.env.parsers import MaybeThinkParser as MaybeThinkParser
    from proctor.env.parsers import Parser as Parser
    from proctor.env.parsers import ThinkParser as ThinkParser
    from proctor.env.parsers import extract_boxed as extract_boxed
    from proctor.env.parsers import extract_boxed_answer as extract_boxed_answer
    from proctor.env.parsers import extract_hash_answer as extract_hash_answer
    from proctor.env.rewards import EvaluationResult as EvaluationResult
    from proctor.env.rubric import Rubric as Rubric
    from proctor.env.rubric import RubricGroup as RubricGroup
    from proctor.env.state import State as State
    from proctor.env.templates import Environment as Environment
    from proctor.env.tool_env import StatefulToolEnv as StatefulToolEnv
    from proctor.env.tool_env import ToolEnv as ToolEnv
    from proctor.env.xml_parser import XMLParser as XMLParser
    from proctor.errors import AgentError as AgentError
    from proctor.errors import ConfigError as ConfigError
    from proctor.errors import EmptyModelResponseError as EmptyModelResponseError
    from proctor.errors import EnvError as EnvError
    from proctor.errors import Error as Error
    from proctor.errors import ExcludedError as ExcludedError
    from proctor.errors import GraderError as GraderError
    from proctor.errors import InfraError as InfraError
    from proctor.errors import InvalidModelResponseError as InvalidModelResponseError
    from proctor.errors import ModelError as ModelError
    from proctor.errors import OverlongPromptError as OverlongPromptError
    from proctor.errors import SandboxError as SandboxError
    from proctor.errors import SpoiledWorkspaceError as SpoiledWorkspaceError
    from proctor.evaluation.compare import compare as compare
    from proctor.evaluation.evaluate import evaluate as evaluate
    from proctor.evaluation.rescore import rescore as rescore
    from proctor.evaluation.taskset import Job as Job
    from proctor.evaluation.taskset import Taskset as Taskset
    from proctor.models.openai_chat import OpenAIChat as OpenAIChat
    from proctor.models.scripted import Scripted as Scripted
    from proctor.models.scripted import Step as Step
    from proctor.rollout import Rollout as Rollout
    from proctor.rollout import Score as Score
    from proctor.rollout import Subscore as Subscore
    from proctor.runtimes.daytona import DaytonaRuntime as DaytonaRuntime
    from proctor.runtimes.docker import DockerRuntime as DockerRuntime
    from proctor.runtimes.hosted import HostedRuntime as HostedRuntime
    from proctor.runtimes.local import LocalRuntime as LocalRuntime
    from proctor.runtimes.modal import ModalRuntime as ModalRuntime
    from proctor.runtimes.runtime import Runtime as Runtime
    from proctor.runtimes.shared import Shared as Shared
    from proctor.store.frames import load_frame as load_frame
    from proctor.task import Task as Task
    from proctor.tools import ToolCallError as ToolCallError
    from proctor.tools import ToolError as ToolError
    from proctor.tools import ToolParseError as ToolParseError
    from proctor.tools import parallel_tool as parallel_tool
    from proctor.types import AssistantMessage as AssistantMessage
    from proctor.types import DatasetBuilder as DatasetBuilder
    from proctor.types import Info as Info
    from proctor.types import Message as Message
    from proctor.types import Messages as Messages
    from proctor.types import RewardFunc as RewardFunc
    from proctor.types import SamplingArgs as SamplingArgs
    from proctor.types import SystemMessage as SystemMessage
    from proctor.types import TextMessage as TextMessage
    from proctor.types import Tool as Tool
    from proctor.types import ToolCall as ToolCall
    from proctor.types import ToolMessage as ToolMessage
    from proctor.types import UserMessage as UserMessage
    from proctor.utils.config_utils import MissingKeyError as MissingKeyError
    from proctor.utils.config_utils import ensure_keys as ensure_keys
    from proctor.utils.data_utils import load_example_dataset as load_example_dataset
    from proctor.utils.env_utils import load_environment as load_environment
    from proctor.workflow.authoring import AgentWorkflow as AgentWorkflow
    from proctor.workflow.authoring import AgentWorkflowContext as AgentWorkflowContext
    from proctor.workflow.authoring import AgentWorkflowOutput as AgentWorkflowOutput
    from proctor.workflow.authoring import Grader as Grader
    from proctor.workflow.authoring import GraderContext as GraderContext
    from proctor.workflow.authoring import RolloutSample as RolloutSample
    from proctor.workflow.environment import WorkflowEnvironment as WorkflowEnvironment

_HOMES = {
    "proctor.agents.resolve": ("create_agent",),
    "proctor.agents.command": ("Command",),
    "proctor.agents.tool_loop": ("ToolLoop",),
    "proctor.client.sandboxes": ("instance", "sandbox"),
    "proctor.contracts": ("Desk",),
    "proctor.env.capability": ("Capability",),
    "proctor.env.echo": ("EchoEnvironment",),
    "proctor.env.graders": (
        "all_of",
        "any_of",
        "combine",
        "contains",
        "contains_all",
        "contains_any",
        "exact",
        "f1",
        "numeric",
        "part",
        "shell",
    ),
    "proctor.env.group": ("EnvGroup",),
    "proctor.env.hooks": ("cleanup", "stop", "teardown"),
    "proctor.env.judge": ("JudgeRubric",),
    "proctor.env.math_rubric": ("MathRubric",),
    "proctor.env.mcp_env": ("McpEnv",),
    "proctor.env.multi_turn": ("MultiTurnEnv", "SingleTurnEnv"),
    "proctor.env.parsers": (
        "MaybeThinkParser",
        "Parser",
        "ThinkParser",
        "extract_boxed",
        "extract_boxed_answer",
        "extract_hash_answer",
    ),
    "proctor.env.rewards": ("EvaluationResult",),
    "proctor.env.rubric": ("Rubric", "RubricGroup"),
    "proctor.env.state": ("State",),
    "proctor.env.templates": ("Environment",),
    "proctor.env.tool_env": ("StatefulToolEnv", "ToolEnv"),
    "proctor.env.xml_parser": ("XMLParser",),
    "proctor.errors": (
        "AgentError",
        "ConfigError",
        "EnvError",
        "ExcludedError",
        "GraderError",
        "InfraError",
        "ModelError",
        "SpoiledWorkspaceError",
        "EmptyModelResponseError",
        "Error",
        "InvalidModelResponseError",
        "OverlongPromptError",
        "SandboxError",
    ),
    "proctor.evaluation.compare": ("compare",),
    "proctor.evaluation.evaluate": ("evaluate",),
    "proctor.evaluation.rescore": ("rescore",),
    "proctor.models.openai_chat": ("OpenAIChat",),
    "proctor.models.scripted": ("Scripted", "Step"),
    "proctor.rollout": ("Rollout", "Score", "Subscore"),
    "proctor.runtimes.daytona": ("DaytonaRuntime",),
    "proctor.runtimes.docker": ("DockerRuntime",),
    "proctor.runtimes.hosted": ("HostedRuntime",),
    "proctor.runtimes.local": ("LocalRuntime",),
    "proctor.runtimes.modal": ("ModalRuntime",),
    "proctor.runtimes.runtime": ("Runtime",),
    "proctor.runtimes.shared": ("Shared",),
    "proctor.store.frames": ("load_frame",),
    "proctor.task": ("Task",),
    "proctor.tools": ("ToolCallError", "ToolError", "ToolParseError", "parallel_tool"),
    "proctor.types": (
        "AssistantMessage",
        "DatasetBuilder",
        "Info",
        "Message",
        "Messages",
        "RewardFunc",
        "SamplingArgs",
        "SystemMessage",
        "TextMessage",
        "Tool",
        "ToolCall",
        "ToolMessage",
        "UserMessage",
    ),
    "proctor.utils.config_utils": ("MissingKeyError", "ensure_keys"),
    "proctor.utils.data_utils": ("load_example_dataset",),
    "proctor.utils.env_utils": ("load_environment",),
    "proctor.workflow.authoring": (
        "AgentWorkflow",
        "AgentWorkflowContext",
        "AgentWorkflowOutput",
        "Grader",
        "GraderContext",
        "RolloutSample",
    ),
    "proctor.workflow.environment": ("WorkflowEnvironment",),
    "proctor.evaluation.taskset": ("Job", "Taskset"),
}
_MODULES = frozenset(("envs", "errors", "parsers", "rubrics", "types", "utils"))
"""Modules that may be named without being imported, as in verifiers."""
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if name == "HUDRuntime":  # ImportError, because `from proctor import …` hides an AttributeError's text
        raise ImportError("HUDRuntime is called HostedRuntime here: from proctor import HostedRuntime")
    if home is None and name in _MODULES:
        from importlib import import_module

        return import_module(f"proctor.{name}")
    if home is None:
        raise AttributeError(f"module 'proctor' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return list(__all__)
