"""The `proctor` command: finds the subcommand, loads only that, and turns failures into exit codes."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

import click

from proctor import __version__
from proctor.cli.views.escape import echo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from click.shell_completion import CompletionItem

SECTIONS = {
    "Evaluate": {
        "eval": (
            "proctor.cli.commands.eval:eval_group",
            "Evaluate a model on an environment, here or on a server.",
        ),
        "jobs": ("proctor.cli.commands.jobs:jobs_command", "List runs, and the rollouts of one."),
        "trace": (
            "proctor.cli.commands.trace:trace_group",
            "Show one rollout in full, or where two diverge.",
        ),
        "query": ("proctor.cli.commands.query:query_command", "Ask any number of runs a question in SQL."),
        "view": ("proctor.cli.commands.view:view_command", "Look at local runs in the browser."),
        "import": (
            "proctor.cli.commands.import_results:import_command",
            "Import results of Inspect, verifiers, Harbor, HUD or promptfoo.",
        ),
        "models": ("proctor.cli.commands.models:models_group", "Show which models you can use by name."),
        "cluster": (
            "proctor.cli.commands.cluster:cluster_group",
            "Show a Ray cluster's nodes, and whether they could work.",
        ),
    },
    "Rollouts": {
        "rollout": (
            "proctor.cli.commands.rollout:rollout_group",
            "Create and list rollouts: a workflow and a grader in a repository.",
        ),
        "dataset": (
            "proctor.cli.commands.dataset:dataset_group",
            "Validate, push, pull and preview datasets.",
        ),
        "source": (
            "proctor.cli.commands.source:source_group",
            "Git repositories that a server takes rollouts from.",
        ),
        "doctor": (
            "proctor.cli.commands.doctor:doctor_command",
            "Check a repository of rollouts, and say how to mend it.",
        ),
    },
    "Environments": {
        "env": ("proctor.cli.commands.env:env_group", "Create, check, install, push and find environments."),
        "task": ("proctor.cli.commands.task:task_group", "List, start and grade single tasks by hand."),
        "serve": (
            "proctor.cli.commands.serve:serve_command",
            "Serve an environment to other processes or machines.",
        ),
    },
    "On a server": {
        "login": ("proctor.cli.commands.login:login_command", "Log in to a server."),
        "logout": (
            "proctor.cli.commands.login:logout_command",
            "Log out and revoke the login's token.",
        ),
        "whoami": (
            "proctor.cli.commands.login:whoami_command",
            "Show who you are on a server and what you may do.",
        ),
        "dashboard": (
            "proctor.cli.commands.dashboard:dashboard_command",
            "Open a server's dashboard in the browser, logged in.",
        ),
        "context": (
            "proctor.cli.commands.contexts:context_group",
            "List your server logins and choose one.",
        ),
        "secret": ("proctor.cli.commands.secrets:secret_group", "Store secrets on a server for hosted runs."),
        "var": ("proctor.cli.commands.secrets:var_group", "Set variables for hosted runs of an environment."),
        "wallet": (
            "proctor.cli.commands.wallet:wallet_group",
            "Show your balance and usage.",
        ),
        "team": ("proctor.cli.commands.people:team_group", "Create teams and manage their members."),
        "token": ("proctor.cli.commands.people:token_group", "Create, list and revoke tokens."),
    },
    "Run a server": {
        "server": (
            "proctor.cli.commands.server:server_command",
            "Start a server: a hub, hosted runs, every model.",
        ),
        "runner": (
            "proctor.cli.commands.runner:runner_command",
            "Execute a server's hosted runs on this machine.",
        ),
        "user": ("proctor.cli.commands.people:user_group", "Add, list and disable users of a server."),
    },
    "Shell": {
        "completion": ("proctor.cli.completion:completion_command", "Print a shell's completion script."),
    },
}
ELSEWHERE = {
    "cancel": "eval stop RUN",
    "deploy": "env push",
    "init": "env init NAME",
    "install": "env install NAME",
    "list": "env list",
    "pull": "env pull OWNER/NAME",
    "push": "env push",
    "run": "eval run ENVIRONMENT",
    "sync": "env push",
}
"""Words that other tools, and habit, put first, and the command that does what they mean."""
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}


class LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry[0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in ELSEWHERE:
            ctx.fail(f"No such command {args[0]!r}; use `proctor {ELSEWHERE[args[0]]}`.")
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            from difflib import get_close_matches

            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean `proctor {near[0]}`?" if near else "`proctor --help` lists them all."
            ctx.fail(f"No such command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, (_, text) in commands.items()])


def complete_parameter(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from proctor.cli.completion import candidates_for

    return candidates_for(ctx, param, incomplete)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="proctor")
@click.option(
    "-c",
    "--context",
    metavar="NAME",
    shell_complete=complete_parameter,
    help="The server to use: one of `proctor context list`.",
)
def proctor(context: str | None) -> None:
    """Evaluate language models and agents, and know whether to believe the number."""
    if context is not None:
        os.environ["PROCTOR_CONTEXT"] = context
        for above in ("PROCTOR_API_URL", "PROCTOR_API_KEY"):  # a flag wins over the environment
            os.environ.pop(above, None)


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line with these arguments, or with the process's own, and exit."""
    from proctor.errors import ConfigError, ProctorError

    try:
        code = proctor(args=arguments, prog_name="proctor", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except ConfigError as error:
        fail(error, 2)
    except ProctorError as error:
        fail(error, 2 if getattr(error, "is_usage", False) else 1)
    else:
        sys.exit(code if isinstance(code, int) else 0)


def fail(error: Exception, code: int) -> None:
    """Print one line per problem, whatever the messages contain."""
    for problem in getattr(error, "problems", (str(error),)):
        echo(f"Error: {' '.join(problem.split())}", err=True)
    sys.exit(code)
