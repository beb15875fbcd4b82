"""`proctor task`: list, start and grade single tasks by hand, here or where an environment is served."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.channel.frames import NO_TASK, RemoteError
from proctor.cli.commands.hub import is_hub_reference
from proctor.cli.commands.hub_fetch import find_or_fetch
from proctor.cli.commands.serve import find_default_source
from proctor.cli.commands.server_calls import call_server
from proctor.cli.commands.shared_options import json_option, limit_option
from proctor.cli.views.escape import echo, one_line
from proctor.cli.views.formatting import format_quantity
from proctor.cli.views.stdout import print_json, print_json_line
from proctor.errors import ConfigError, ProctorError, RolloutError
from proctor.packages.loading import find_environment
from proctor.packages.task_files import has_tasks
from proctor.packages.task_source import TaskSource, open_location, open_task_source
from proctor.runtimes.serving import TOKEN_VARIABLE

if TYPE_CHECKING:
    from proctor.api.hub import TaskInfo, Version
    from proctor.channel.client import Channel
    from proctor.client.connection import ServerConnection
    from proctor.env.template_rollout import TemplateRollout

SOURCE = click.option(
    "-s",
    "--source",
    metavar="SOURCE",
    help="File or folder of the environment or of its tasks, its name, or owner/name on a server.",
)
URL = click.option("-u", "--url", metavar="URL", help="Where it is served, such as tcp://127.0.0.1:8765.")
SHOWN_TASKS = 50
PROMPT_CHARACTERS = 100
ARGS = click.option("-a", "--args", "text", metavar="JSON", default="{}", help="Inputs of the template.")


@click.group("task")
def task_group() -> None:
    """List, start and grade single tasks by hand.

    A task is played in the environment of --source (without it: the one found here), or in one that is served
    at --url, where a started task waits to be graded by a later command.

    \b
    proctor task list
    proctor task list ada/letters
    proctor task start count -a '{"word": "pear"}'
    proctor task start strawberry -s tasks.jsonl
    proctor task grade count -a '{"word": "pear"}' --answer 1
    proctor task start count -a '{"word": "pear"}' -u tcp://127.0.0.1:8765
    proctor task grade --answer 1 -u tcp://127.0.0.1:8765
    """


@task_group.command("list")
@click.argument("what", metavar="[SOURCE|OWNER/NAME]", required=False)
@SOURCE
@URL
@limit_option(SHOWN_TASKS)
@json_option
def list_command(what: str | None, source: str | None, url: str | None, most: int, as_json: bool) -> None:
    """List the templates of an environment, and the tasks made from them by their slugs.

    For a taskset on a server, owner/name or owner/name@version, list its tasks; no code is run.
    """
    if what is not None and (source or url):
        raise ConfigError(f"{what!r} and {source or url!r} both say where the tasks are; give one of them.")
    source = what or source
    check_either(source, url)
    if source is not None and is_hub_reference(source):
        list_hub_tasks(source, most, as_json)
        return
    with redirect_stdout(sys.stderr):  # what the environment prints is no part of the answer
        entries = run_coroutine(list_remote_templates(url)) if url else list_local_tasks(source)
    if as_json:
        print_json_line(entries)
        return
    for entry in entries:
        inputs = ", ".join(describe_inputs(entry.get("args") or {}))
        about = (entry.get("description") or "").strip().split("\n")[0]
        echo(f"{entry['id']}({inputs})" + (f"  {about}" if about else ""))
        echo_tasks([(task["slug"], format_args(task["args"])) for task in entry.get("tasks", ())], most)


@task_group.command("start")
@click.argument("template", metavar="SLUG|TEMPLATE")
@ARGS
@SOURCE
@URL
@json_option
def start_command(template: str, text: str, source: str | None, url: str | None, as_json: bool) -> None:
    """Start a task and print its prompt: one by its slug, or a new one of a template with --args.

    A served task is named by its template, and waits on the server to be graded.
    """
    check_either(source, url)
    args = parse_inputs(text)
    prompt, session = run_coroutine(
        start_remotely(url, template, args) if url else start_locally(source, template, args)
    )
    if as_json:
        print_json_line({"prompt": prompt, "session_id": session})
        return
    if isinstance(prompt, str):
        echo(prompt)
    else:
        print_json(prompt)
    if session is not None:
        echo(
            f"The task waits as {session}: proctor task grade --session {session} -u {url} --answer …",
            err=True,
        )


@task_group.command("grade")
@click.argument("template", metavar="[SLUG|TEMPLATE]", required=False)
@ARGS
@SOURCE
@URL
@click.option("--session", metavar="ID", help="Which waiting task to grade.")
@click.option("--answer", metavar="TEXT", help="The answer.")
@click.option("--answer-file", metavar="FILE", help="A file with the answer; - is stdin.")
@json_option
def grade_command(
    template: str | None,
    text: str,
    source: str | None,
    url: str | None,
    session: str | None,
    answer: str | None,
    answer_file: str | None,
    as_json: bool,
) -> None:
    """Grade an answer and print its score: for a task started now, or for the one waiting at --url."""
    check_either(source, url)
    given = read_answer(answer, answer_file)
    args = parse_inputs(text)
    if url:
        if template and session:
            raise ConfigError(f"--session names a task that was already started; omit {template!r}.")
        frame = run_coroutine(grade_remotely(url, template, args, session, given))
    else:
        if session or not template:
            wanted = (
                "--session names a task waiting on a server; pass its --url."
                if session
                else ("Name a task or a template, or pass the --url where a started task waits.")
            )
            raise ConfigError(wanted)
        frame = run_coroutine(grade_locally(source, template, args, given))
    print_json_line(frame) if as_json else echo(f"{frame['score']:g}")


# Words


def check_either(source: str | None, url: str | None) -> None:
    if source and url:
        raise ConfigError("--source plays the task here and --url elsewhere; give one of them.")


def parse_inputs(text: str) -> dict[str, Any]:
    try:
        args = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"--args is not valid JSON: {error}.") from error
    if not isinstance(args, dict):
        raise ConfigError(f"--args should be a JSON object, not {text!r}.")
    return args


def read_answer(answer: str | None, file: str | None) -> str:
    if (answer is None) == (file is None):
        raise ConfigError("Give the answer with --answer or --answer-file.")
    if file is None:
        return answer or ""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error


def describe_inputs(schema: Mapping[str, Any]) -> list[str]:
    """Inputs as they are written in Python."""
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return [
        f"{name}: {kind.get('type', 'any')}" + ("" if name in required else f" = {kind.get('default')!r}")
        for name, kind in properties.items()
    ]


def run_coroutine(work: Coroutine[Any, Any, Any]) -> Any:
    """The result; what the environment raises is one sentence and exit code 1."""
    try:
        with redirect_stdout(sys.stderr):
            return asyncio.run(work)
    except RolloutError as error:
        raise ProctorError(str(error)) from error


# Here


def open_source(source: str | None) -> TaskSource:
    """What is at a path, of a name, or on a server; without a source, what is found here."""
    if source is None:
        return open_task_source("." if has_tasks(Path()) else find_default_source())
    if is_hub_reference(source):
        return open_location(find_or_fetch(source) or find_environment(source))
    return open_task_source(source)


def list_local_tasks(source: str | None) -> list[dict[str, Any]]:
    """The templates, each with its tasks."""
    from proctor.channel.server import ServedEnvironment

    opened = open_source(source)
    return [
        {
            **entry,
            "env": name,
            "tasks": [
                {"slug": task.slug, "args": task.args}
                for task in opened.tasks
                if (task.env, task.template) == (name, entry["id"])
            ],
        }
        for name, environment in opened.environments.items()
        for entry in ServedEnvironment(environment).list_templates()
    ]


def create_rollout(source: str | None, word: str, args: dict[str, Any]) -> TemplateRollout:
    from proctor.channel.remote_seat import RemoteSeat

    opened = open_source(source)
    task = opened.find_task(word, args)
    rollout: TemplateRollout = opened.environment_of(task).create_rollout(task)
    rollout.seat = RemoteSeat(None)
    return rollout


async def start_locally(source: str | None, template: str, args: dict[str, Any]) -> tuple[Any, None]:
    from proctor.channel.grades import encode_prompt

    rollout = create_rollout(source, template, args)
    try:
        return encode_prompt(await rollout.begin()), None
    finally:
        await rollout.close()


async def grade_locally(
    source: str | None, template: str, args: dict[str, Any], answer: str
) -> dict[str, Any]:
    from proctor.channel.grades import encode_grade

    rollout = create_rollout(source, template, args)
    try:
        await rollout.begin()
        return encode_grade(await rollout.settle(answer))
    finally:
        await rollout.close()


# On a hub


def list_hub_tasks(word: str, most: int, as_json: bool) -> None:
    from proctor.client import hub

    wanted = hub.parse_reference(word)

    async def ask(server: ServerConnection) -> tuple[Version, list[TaskInfo]]:
        version = await hub.read_version(server, wanted)
        exact = hub.EnvironmentReference(wanted.slug, version.version)
        return version, await hub.list_tasks(server, exact)

    version, tasks = call_server(ask)
    if as_json:
        print_json({"environment": wanted.slug, "version": version.version, "tasks": tasks})
        return
    found = version.check.tasks or len(tasks)
    echo(f"{wanted.slug} {version.version}: {format_quantity(found, 'task')}")
    echo_tasks([(task.slug, describe_hub_task(task)) for task in tasks], most)
    if len(tasks) < found:
        echo(f"The server lists only the first {len(tasks):,}.", err=True)


def describe_hub_task(task: TaskInfo) -> str:
    if task.template:
        return f"{task.template}({format_args(task.args)})"
    return one_line(task.prompt)[:PROMPT_CHARACTERS]


def format_args(args: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in args.items())


def echo_tasks(tasks: Sequence[tuple[str, str]], most: int) -> None:
    """A slug and what it stands for on each line."""
    shown = tasks if most < 0 else tasks[:most]
    width = max((len(one_line(slug)) for slug, _ in shown), default=0)
    for slug, about in shown:
        echo(f"  {one_line(slug):<{width}}  {one_line(about)}".rstrip())
    if len(tasks) > len(shown):
        echo(f"  … {len(tasks) - len(shown):,} more; -n -1 shows all.")


# Where it is served


async def connect_to_server(url: str) -> Channel:
    from proctor.channel.client import connect

    return await connect(url, os.environ.get(TOKEN_VARIABLE))


async def list_remote_templates(url: str) -> list[dict[str, Any]]:
    channel = await connect_to_server(url)
    try:
        entries: list[dict[str, Any]] = (await call_method(channel, "tasks.list", {})).get("tasks") or []
        return entries
    finally:
        await channel.close()


async def start_remotely(url: str, template: str, args: dict[str, Any]) -> tuple[Any, str]:
    channel = await connect_to_server(url)
    frame = await call_method(channel, "tasks.start", {"id": template, "args": args})
    channel.wire.close()  # without ending the session: the task waits there
    return frame.get("prompt"), channel.greeting.session_id


async def grade_remotely(
    url: str, template: str | None, args: dict[str, Any], session: str | None, answer: str
) -> dict[str, Any]:
    channel = await connect_to_server(url)
    try:
        if session is not None:
            await explain_remote_errors(channel.hello(session))
        if template is not None:
            await call_method(channel, "tasks.start", {"id": template, "args": args})
        return await call_method(channel, "tasks.grade", {"answer": answer})
    finally:
        await channel.close()


async def call_method(channel: Channel, method: str, params: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = await explain_remote_errors(channel.ask(method, params))
    return answer


async def explain_remote_errors(asking: Coroutine[Any, Any, Any]) -> Any:
    try:
        return await asking
    except RemoteError as error:
        hint = "; start one with: proctor task start" if str(error) == NO_TASK else ""
        if "parked sessions" in str(error):
            hint = ", here by --session"
        raise ProctorError(f"{error}{hint}") from error
