"""Shell completion: the script for a shell, and the candidates for each argument.

Reads folders and registries; loads no environment and makes no requests. Whatever cannot be read completes to
nothing: a Tab must not print errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click
from click.shell_completion import CompletionItem, get_completion_class

SHELLS = ("bash", "zsh", "fish")
COMPLETE_VARIABLE = "_PROCTOR_COMPLETE"

Candidates = Iterable[tuple[str, str]]
"""Words, each with what it is."""


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    eval "$(proctor completion bash)"                                   # in ~/.bashrc
    eval "$(proctor completion zsh)"                                    # in ~/.zshrc
    proctor completion fish > ~/.config/fish/completions/proctor.fish
    """
    from proctor.cli.app import proctor

    made = get_completion_class(shell)
    assert made is not None
    script = made(proctor, {}, "proctor", COMPLETE_VARIABLE)
    click.echo(script.source_template % script.source_vars())


def candidates_for(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Candidates for a parameter, by its name."""
    find = FINDERS.get(param.name or "", no_candidates)
    try:
        found = [(word, what) for word, what in find(ctx) if word.startswith(incomplete)]
    except Exception:
        found = []
    items = [CompletionItem(word, help=what) for word, what in dict(found).items()]
    return [*items, *complete_paths(param, incomplete)]


def complete_paths(param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Where a path may stand too, the shell completes it by itself."""
    if param.name in FOLDERS:
        return [CompletionItem(incomplete, type="dir")]
    return [CompletionItem(incomplete, type="file")] if param.name in FILES else []


def no_candidates(ctx: click.Context) -> Candidates:  # noqa: ARG001
    return ()


def environments(ctx: click.Context) -> Candidates:
    from proctor import plugins
    from proctor.packages.loading import local_names

    folder = ctx.params.get("env_dir_path") or "./environments"
    yield from ((name.replace("_", "-"), f"in {folder}") for name in local_names(folder))
    yield from ((name, "installed") for name in plugins.list_environments())


def models(ctx: click.Context) -> Candidates:
    from proctor.cli.commands.models import load_aliases
    from proctor.config.schema import DEFAULT_REGISTRY

    known = load_aliases(ctx.params.get("endpoints_path") or DEFAULT_REGISTRY)
    yield from ((alias, endpoint.model) for alias, endpoint in known.items())
    yield "local", "the embedded model"
    yield "scripted", "answers from a file"


def agents(ctx: click.Context) -> Candidates:
    from proctor import plugins

    yield from ((name, "agent") for name in plugins.list_names(plugins.AGENTS))
    yield from models(ctx)


def runs(ctx: click.Context) -> Candidates:  # noqa: ARG001
    from proctor.store.index import run_folders, search_folders

    yield from ((str(folder), folder.parent.name) for folder in run_folders(search_folders()))


def exportable_runs(ctx: click.Context) -> Candidates:
    yield "latest", "the newest run"
    yield from runs(ctx)


def contexts(ctx: click.Context) -> Candidates:  # noqa: ARG001
    import os

    from proctor.client.contexts import read_contexts

    yield from ((name, context.url) for name, context in read_contexts(os.environ).contexts.items())


def client_types(ctx: click.Context) -> Candidates:  # noqa: ARG001
    from proctor import plugins

    return ((name, "") for name in plugins.list_names(plugins.MODELS))


def listeners(ctx: click.Context) -> Candidates:  # noqa: ARG001
    from proctor import plugins

    return ((name, "") for name in plugins.list_names(plugins.LISTENERS))


def providers(ctx: click.Context) -> Candidates:  # noqa: ARG001
    from proctor.config.providers import PROCTOR, PROVIDERS

    yield PROCTOR, "the server you are logged in to"
    yield from ((name, provider.url) for name, provider in PROVIDERS.items())


def variables(ctx: click.Context) -> Candidates:  # noqa: ARG001
    import os

    return ((name, "") for name in sorted(os.environ) if name.endswith(("_KEY", "_TOKEN")))


FINDERS: dict[str, Callable[[click.Context], Candidates]] = {
    "env_id": environments,
    "agent": agents,
    "model": models,
    "resume": runs,
    "run": exportable_runs,
    "context": contexts,
    "api_client_type": client_types,
    "listener": listeners,
    "provider": providers,
    "api_key_var": variables,
}
"""By the name of the parameter."""
FOLDERS = {"resume", "run", "env_dir_path", "output_dir"}
FILES = {"env_id", "agent", "endpoints_path", "output"}
