"""Every setting of an evaluation: its name, its flag, its default and its meaning, defined once.

The command line, the documentation and the saved record are built from this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec

from proctor.wires.extra_body import merge_extra_body

DEFAULT_STATE_HEADERS = {"X-Session-ID": "example_id"}
"""Sent unless the same name is given another key."""
DEFAULT_REGISTRY = "./configs/endpoints.toml"
"""Read if it exists."""
AUTO = "auto"
HERE = "here"
"""Workers are processes of this machine."""
UNLIMITED = 1_000_000
"""More rollouts than a machine can have in flight: no limit."""
LATEST = "latest"
"""What to resume when no folder is named: the newest unfinished run that matches."""


def setting(help: str, *flags: str, parse: str = "") -> msgspec.Meta:  # noqa: A002
    """What a field means and which flags set it. `parse` names the parser of its value."""
    return msgspec.Meta(description=help, extra={"flags": flags, "parse": parse})


class EvalConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One evaluation of one environment: printable, saved verbatim, re-runnable."""

    env_id: Annotated[
        str, setting("Environment: an installed package, a folder in ./environments, or a path.")
    ]
    env_args: Annotated[
        Mapping[str, Any],
        setting("JSON object passed to load_environment().", "-a", "--env-args", parse="json"),
    ] = {}
    extra_env_kwargs: Annotated[
        Mapping[str, Any],
        setting(
            "JSON object of attributes set on the environment, such as max_turns.",
            "-x",
            "--extra-env-kwargs",
            parse="json",
        ),
    ] = {}
    env_dir_path: Annotated[
        str, setting("Folder of local environments, and base of their outputs.", "-p", "--env-dir-path")
    ] = "./environments"

    isolated: Annotated[
        bool,
        setting(
            "Run an environment of another framework in its own virtual environment, built once for its "
            "requirements, even if they are installed here.",
            "--isolated",
        ),
    ] = False

    agent: Annotated[
        str | None,
        setting(
            "The agent that works on the tasks, if the environment takes one: claude, openai, gemini, "
            "openai_compatible, tool_loop, one from a plugin, your own as package.module:Name or "
            "file.py:Name, or a model, which then works in the plain tool loop."
        ),
    ] = None
    agent_args: Annotated[
        Mapping[str, Any],
        setting("JSON object of settings for the agent.", "--agent-args", parse="json"),
    ] = {}
    max_steps: Annotated[
        int | None,
        setting("Most model calls an agent may make for one answer; default 10.", "--max-steps"),
    ] = None

    runtime: Annotated[
        str | None,
        setting(
            "Where each rollout's environment runs: local (a child process), docker://image, modal://…, "
            "daytona://…, hosted, or tcp://host:port, where it is already served. Default: this process.",
            "--runtime",
        ),
    ] = None
    runtime_args: Annotated[
        Mapping[str, Any],
        setting("JSON object of settings for the runtime.", "--runtime-args", parse="json"),
    ] = {}

    name: Annotated[
        str | None,
        setting("What to call the run in folders and tables, instead of the environment.", "--name"),
    ] = None
    label: Annotated[
        str, setting("The combination of a sweep that this run has; generated. Part of the folder's name.")
    ] = ""

    config_hash: Annotated[
        str, setting("Hash of the run's recipe; generated. Equal for all runs of the recipe.")
    ] = ""

    model: Annotated[
        str | None,
        setting(
            "Model name, or alias in the endpoint registry; `proctor models list` shows which endpoint "
            "answers, and what is used without one. 'scripted' replays the answers in the file given by -b.",
            "-m",
            "--model",
        ),
    ] = None
    endpoint_id: Annotated[
        str | None, setting("Alias in the endpoint registry, instead of a model; in TOML only.")
    ] = None
    endpoints_path: Annotated[str, setting("Endpoint registry, a TOML file.", "-e", "--endpoints-path")] = (
        DEFAULT_REGISTRY
    )
    provider: Annotated[
        str | None,
        setting(
            "Well-known provider, which decides address, key variable and client type: proctor (the server "
            "you are logged in to), prime, openai, anthropic, gemini, openrouter, deepseek, vllm.",
            "--provider",
        ),
    ] = None
    api_base_url: Annotated[str | None, setting("API base URL.", "-b", "--api-base-url")] = None
    api_key_var: Annotated[
        str | None, setting("Environment variable that holds the API key.", "-k", "--api-key-var")
    ] = None
    api_client_type: Annotated[
        str | None,
        setting(
            "Client: openai_chat_completions (default), openai_completions, openai_chat_completions_token, "
            "openai_responses, anthropic_messages, gemini, local, scripted, or one from a plugin.",
            "--api-client-type",
        ),
    ] = None
    headers: Annotated[
        Mapping[str, str],
        setting("Extra HTTP header, 'Name: Value'; repeatable.", "--header", parse="header"),
    ] = {}
    headers_from_state: Annotated[
        Mapping[str, str],
        setting(
            "HTTP header whose value is read from the rollout's state, 'Name: key'; repeatable.",
            "--header-from-state",
            parse="header",
        ),
    ] = msgspec.field(default_factory=DEFAULT_STATE_HEADERS.copy)

    max_tokens: Annotated[int | None, setting("Most tokens to generate per call.", "-t", "--max-tokens")] = (
        None
    )
    temperature: Annotated[float | None, setting("Sampling temperature.", "-T", "--temperature")] = None
    sampling_args: Annotated[
        Mapping[str, Any],
        setting(
            "JSON object of further sampling parameters, sent unchanged; overrides -t and -T. The fields of "
            "an extra_body in it are sent beside the others.",
            "-S",
            "--sampling-args",
            parse="json",
        ),
    ] = {}

    num_examples: Annotated[
        int, setting("Tasks to evaluate; -1 means all. Default for a task file: 1.", "-n", "--num-examples")
    ] = 5
    rollouts_per_example: Annotated[
        int,
        setting(
            "Rollouts per task. Default for a task file: 1.",
            "-r",
            "--rollouts-per-example",
            "--group",
            "--group-size",
        ),
    ] = 3
    task_ids: Annotated[
        tuple[str | int, ...],
        setting(
            "Tasks to evaluate, by id or by position, counted from 0; comma-separated.",
            "--task-ids",
            parse="names",
        ),
    ] = ()
    shuffle: Annotated[bool, setting("Take tasks in a seeded random order.", "--shuffle")] = False
    seed: Annotated[int, setting("Seed of the random order.", "--seed")] = 0

    max_concurrent: Annotated[
        int, setting("Rollouts in flight at once; 0 or -1 for no limit.", "-c", "--max-concurrent")
    ] = 32
    max_concurrent_generation: Annotated[
        int | None,
        setting("Rollouts in progress at once; defaults to -c.", "--max-concurrent-generation"),
    ] = None
    max_concurrent_scoring: Annotated[
        int | None, setting("Rollouts being scored at once; defaults to -c.", "--max-concurrent-scoring")
    ] = None
    no_interleave_scoring: Annotated[
        bool, setting("Score only after every rollout has been played.", "-N", "--no-interleave-scoring")
    ] = False
    independent_scoring: Annotated[
        bool, setting("Score each rollout by itself, never as a group.", "-i", "--independent-scoring")
    ] = False
    num_workers: Annotated[
        int | str,
        setting(
            "Worker processes, each with its own environment: a number, or auto (-c ÷ 256, at most one per "
            "core). With 1, rollouts are played in this process.",
            "-w",
            "--num-workers",
            parse="workers",
        ),
    ] = AUTO
    on: Annotated[
        str,
        setting(
            "Where workers run: here, or on the nodes of a Ray cluster: ray (the one that this machine "
            "belongs to) or ray://HOST[:PORT] (the one with its head there).",
            "--on",
        ),
    ] = HERE
    on_args: Annotated[
        Mapping[str, Any],
        setting(
            "JSON object of what each worker needs there: cpus, memory, gpus, resources, placement "
            "(spread or pack), files, variables, listen, room_seconds.",
            "--on-args",
            parse="json",
        ),
    ] = {}
    max_retries: Annotated[
        int, setting("Retries per rollout after a transient infrastructure error.", "--max-retries")
    ] = 0
    start_timeout: Annotated[
        float, setting("Seconds the environment may take to get a rollout ready.", "--start-timeout")
    ] = 600.0
    timeout: Annotated[
        float,
        setting(
            "Seconds a rollout may be played once it is ready. An agent that needs longer is scored on what "
            "it has done.",
            "--timeout",
        ),
    ] = 3600.0
    scoring_timeout: Annotated[
        float, setting("Seconds the scoring of one rollout or group may take.", "--scoring-timeout")
    ] = 600.0
    request_timeout: Annotated[float, setting("Seconds one model call may take.", "--request-timeout")] = (
        600.0
    )
    min_coverage: Annotated[
        float,
        setting("Share of rollouts that must be scored for exit code 0.", "--min-coverage"),
    ] = 1.0

    pass_threshold: Annotated[
        float | None,
        setting(
            "Reward from which a rollout counts as passed; default: the environment's, or 0.5.",
            "--pass-threshold",
        ),
    ] = None

    until_halfwidth: Annotated[
        float | None,
        setting(
            "Stop as soon as the mean reward is known to within this much, such as 0.02, by a 95% confidence "
            "sequence that is checked after every task. Tasks are played in random order.",
            "--until-halfwidth",
        ),
    ] = None
    until_decided: Annotated[
        str | None,
        setting(
            "Stop as soon as the run is better or worse than this earlier run of the same tasks (an id, a "
            "folder or 'latest'; with --hosted, the id of a run on the server), by a 95% confidence "
            "sequence of the difference that is checked after every task. Tasks are played in random order.",
            "--until-decided",
        ),
    ] = None
    max_cost: Annotated[
        float | None,
        setting(
            "Stop the run before it costs more than this many dollars; finished rollouts are kept, and "
            "--resume with a larger limit continues.",
            "--max-cost",
        ),
    ] = None

    cache: Annotated[
        str | bool,
        setting(
            "Keep replies in this folder, or without one in your cache folder, and reuse them when the same "
            "rollout makes the same request. In TOML and Python also true.",
            "--cache",
        ),
    ] = False
    save_results: Annotated[bool, setting("Save results in the output folder.", "-s", "--save-results")] = (
        False
    )
    output_dir: Annotated[str | None, setting("Base of the output folder.", "-o", "--output-dir")] = None
    state_columns: Annotated[
        tuple[str, ...],
        setting("State to save with each rollout, comma-separated.", "-C", "--state-columns", parse="names"),
    ] = ()
    save_to_hf_hub: Annotated[
        bool, setting("Push the results to the Hugging Face Hub when the run ends.", "-H", "--save-to-hf-hub")
    ] = False
    hf_hub_dataset_name: Annotated[
        str | None,
        setting(
            "Dataset on the Hub to push to, as owner/name; default: proctor-ENVIRONMENT of your account.",
            "-D",
            "--hf-hub-dataset-name",
        ),
    ] = None

    def sampling(self) -> dict[str, Any]:
        """What is sent with every request of the evaluated model."""
        named = {"max_tokens": self.max_tokens, "temperature": self.temperature}
        given = {key: value for key, value in named.items() if value is not None}
        return {**given, **merge_extra_body(self.sampling_args)}


class Presentation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run is shown and resumed; not part of what is evaluated."""

    verbose: Annotated[bool, setting("Debug logging.", "-v", "--verbose")] = False
    fullscreen: Annotated[
        bool, setting("Use the whole terminal for the live display.", "-f", "--fullscreen")
    ] = False
    disable_tui: Annotated[
        bool, setting("No live display: plain lines and a tqdm bar.", "-d", "--disable-tui")
    ] = False
    abbreviated_summary: Annotated[
        bool, setting("Settings and numbers only, no example rollouts.", "-A", "--abbreviated-summary")
    ] = False
    resume: Annotated[
        str | None,
        setting(
            "Continue the run in this folder; without one, the latest unfinished run that matches.",
            "-R",
            "--resume",
        ),
    ] = None
    accept_changed: Annotated[
        tuple[str, ...],
        setting(
            "Resume even though this setting has changed: api_base_url, for a server that moved. The change "
            "is recorded.",
            "--accept-changed",
            parse="words",
        ),
    ] = ()
    reuse: Annotated[
        str | None,
        setting(
            "Reuse what is still valid in this earlier run (an id, a folder or 'latest'): copy its rows, or "
            "score them again. `proctor eval changed` says which.",
            "--reuse",
        ),
    ] = None
    heartbeat_url: Annotated[
        str | None, setting("URL to request every minute while the run is in progress.", "--heartbeat-url")
    ] = None
    listener: Annotated[
        tuple[str, ...],
        setting(
            "Watch the run with a registered listener, such as otel; repeatable.", "--listener", parse="words"
        ),
    ] = ()
    upload: Annotated[
        bool | None,
        setting(
            "Upload the results to the Proctor server you are logged in to while the run continues. "
            "Default: as set by PROCTOR_UPLOAD or your settings.toml.",
            "--upload/--no-upload",
        ),
    ] = None
    json: Annotated[bool, setting("Print the summary as one JSON object.", "--json")] = False
    dry_run: Annotated[
        bool, setting("Print the resolved settings and what would be played; call no model.", "--dry-run")
    ] = False


class RecipeOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options for a run of a recipe; only with a TOML file that has [experiment]."""

    rows: Annotated[
        str | None,
        setting("Recipe: rows to play instead of its limit, such as 3,7,10-20, counted from 0.", "--rows"),
    ] = None
    offset: Annotated[int, setting("Recipe: rows to leave out before its limit counts.", "--offset")] = 0
    dataset_file: Annotated[
        str | None,
        setting("Recipe: a dataset file to use instead of the one in data/.", "--dataset-file"),
    ] = None
    secrets_file: Annotated[
        str | None,
        setting(
            "Recipe: a file with its secrets, as JSON or NAME=VALUE lines; - for stdin.", "--secrets-file"
        ),
    ] = None
    retry_failed: Annotated[
        bool,
        setting("Recipe: play the failed rows of its latest run again, and nothing else.", "--retry-failed"),
    ] = False
    fresh: Annotated[
        bool, setting("Recipe: move its earlier runs to an archive first; none is resumed.", "--fresh")
    ] = False


class HostedOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Options for a run on a server; only with `--hosted`."""

    hosted: Annotated[
        bool,
        setting(
            "Run on the Proctor server you are logged in to; ENVIRONMENT is owner/name[@version] there, or "
            "the name of one of your own.",
            "--hosted",
        ),
    ] = False
    follow: Annotated[bool, setting("Hosted: follow the run until it ends.", "--follow")] = False
    poll_interval: Annotated[
        float,
        setting(
            "Hosted: seconds between polls when the server's event stream is unavailable.",
            "--poll-interval",
        ),
    ] = 10.0
    timeout_minutes: Annotated[
        int | None,
        setting("Hosted: minutes the run may take, 1 to 1440; default 120.", "--timeout-minutes"),
    ] = None
    allow_sandbox_access: Annotated[
        bool,
        setting(
            "Hosted: let the environment create sandboxes on the server.",
            "--allow-sandbox-access/--no-allow-sandbox-access",
        ),
    ] = False
    allow_instances_access: Annotated[
        bool,
        setting(
            "Hosted: let the environment start longer-lived instances on the server.",
            "--allow-instances-access/--no-allow-instances-access",
        ),
    ] = False
    allow_network_access: Annotated[
        bool,
        setting(
            "Hosted: let the environment reach the network.",
            "--allow-network-access/--no-allow-network-access",
        ),
    ] = False
    custom_secrets: Annotated[
        Mapping[str, str],
        setting(
            "Hosted: secrets for this run alone: names of environment variables that hold them, "
            "comma-separated; @FILE with JSON or NAME=VALUE lines; or a JSON object.",
            "--custom-secrets",
            parse="secrets",
        ),
    ] = {}
    eval_name: Annotated[str | None, setting("Hosted: the run's name.", "--eval-name")] = None
    team: Annotated[str | None, setting("Hosted: the team that owns the run and pays for it.", "--team")] = (
        None
    )


def meta_of(annotation: Any) -> msgspec.Meta:
    meta = annotation.__metadata__[0]
    assert isinstance(meta, msgspec.Meta)
    return meta
