"""`proctor task`: list, start and grade single tasks by hand, here or where an environment is served."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from proctor.cli.views.escape import echo, echo_encoded
from proctor.errors import ConfigError, ProctorError, RolloutError, did_you_mean
from proctor.runtimes.serving import TOKEN_VARIABLE

if TYPE_CHECKING:
    from proctor.channel.client import Channel
    from proctor.env.performance import Performance

SOURCE = click.option("-s", "--source", metavar="PATH", help="File, folder or name of the environment.")
URL = click.option("-u", "--url", metavar="URL", help="Where it is served, as tcp://127.0.0.1:8765.")
ARGS = click.option("-a", "--args", "text", metavar="JSON", default="{}", help="Inputs of the template.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")


@click.group("task", context_settings={"help_option_names": ["-h", "--help"]})
def task_group() -> None:
    """List, start and grade single tasks by hand.

    A task is played in the environment of --source (without it: the one found here), or in one that is served
    at --url, where a started task waits to be graded by a later command.

    \b
    proctor task list
    proctor task start count -a '{"word": "pear"}'
    proctor task grade count -a '{"word": "pear"}' --answer 1
    proctor task start count -a '{"word": "pear"}' -u tcp://127.0.0.1:8765
    proctor task grade --answer 1 -u tcp://127.0.0.1:8765
    """


@task_group.command("list")
@SOURCE
@URL
@JSON
def list_command(source: str | None, url: str | None, as_json: bool) -> None:
    """List the templates of an environment."""
    check_either(source, url)
    entries = run(listed(url)) if url else here(source).listing()
    if as_json:
        echo_encoded(msgspec.json.encode(entries))
        return
    for entry in entries:
        inputs = ", ".join(described(entry.get("args") or {}))
        about = (entry.get("description") or "").strip().split("\n")[0]
        echo(f"{entry['id']}({inputs})" + (f"  {about}" if about else ""))


@task_group.command("start")
@click.argument("template")
@ARGS
@SOURCE
@URL
@JSON
def start_command(template: str, text: str, source: str | None, url: str | None, as_json: bool) -> None:
    """Start a task and print its prompt. Where it is served, it waits there to be graded."""
    check_either(source, url)
    args = inputs_in(text)
    prompt, session = run(started_at(url, template, args) if url else started_here(source, template, args))
    if as_json:
        echo_encoded(msgspec.json.encode({"prompt": prompt, "session_id": session}))
        return
    if isinstance(prompt, str):
        echo(prompt)
    else:
        echo_encoded(msgspec.json.format(msgspec.json.encode(prompt)))
    if session is not None:
        echo(
            f"It waits as {session}: proctor task grade --session {session} -u {url} --answer …",
            err=True,
        )


@task_group.command("grade")
@click.argument("template", required=False)
@ARGS
@SOURCE
@URL
@click.option("--session", metavar="ID", help="Which of the tasks that wait there.")
@click.option("--answer", metavar="TEXT", help="The answer.")
@click.option("--answer-file", metavar="FILE", help="A file that holds the answer; - is standard input.")
@JSON
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
    """Grade an answer and print the score: of TEMPLATE, started now, or of the task that waits at --url."""
    check_either(source, url)
    said = answer_of(answer, answer_file)
    args = inputs_in(text)
    if url:
        if template and session:
            raise ConfigError(f"--session names a task that was started; leave out {template!r}.")
        frame = run(graded_at(url, template, args, session, said))
    else:
        if session or not template:
            wanted = (
                "--session is for a task that waits where it is served; give --url."
                if session
                else ("Say which template, or --url of where a started task waits.")
            )
            raise ConfigError(wanted)
        frame = run(graded_here(source, template, args, said))
    echo_encoded(msgspec.json.encode(frame) if as_json else f"{frame['score']:g}")


# Words


def check_either(source: str | None, url: str | None) -> None:
    if source and url:
        raise ConfigError("--source plays the task here and --url elsewhere; give one of them.")


def inputs_in(text: str) -> dict[str, Any]:
    try:
        args = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise ConfigError(f"--args is not valid JSON: {error}.") from error
    if not isinstance(args, dict):
        raise ConfigError(f"--args should be a JSON object, not {text!r}.")
    return args


def answer_of(answer: str | None, file: str | None) -> str:
    if (answer is None) == (file is None):
        raise ConfigError("Give the answer by --answer or by --answer-file.")
    if file is None:
        return answer or ""
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file} cannot be read: {error}.") from error


def described(schema: Mapping[str, Any]) -> list[str]:
    """Inputs as one would write them in Python."""
    properties, required = schema.get("properties") or {}, schema.get("required") or ()
    return [
        f"{name}: {kind.get('type', 'any')}" + ("" if name in required else f" = {kind.get('default')!r}")
        for name, kind in properties.items()
    ]


def run(work: Coroutine[Any, Any, Any]) -> Any:
    """The result; what the environment raises is one sentence and exit code 1."""
    try:
        return asyncio.run(work)
    except RolloutError as error:
        raise ProctorError(str(error)) from error


# Here


def here(source: str | None) -> Any:
    from proctor.channel.server import Served
    from proctor.cli.commands.serve import found_here
    from proctor.packages.served import environment_at

    return Served(environment_at(source or found_here()))


def performance_of(source: str | None, template: str, args: dict[str, Any]) -> Performance:
    from proctor.channel.served_seat import ServedSeat
    from proctor.task import minted

    environment = here(source).environment
    if template not in environment.templates:
        near = did_you_mean(template, environment.templates)
        raise ConfigError(f"{environment.name!r} has no template {template!r}{near}")
    performance: Performance = environment.perform(minted(environment.name, template, args))
    performance.seat = ServedSeat(None)
    return performance


async def started_here(source: str | None, template: str, args: dict[str, Any]) -> tuple[Any, None]:
    from proctor.channel.grades import prompt_of

    performance = performance_of(source, template, args)
    try:
        return prompt_of(await performance.begin()), None
    finally:
        await performance.close()


async def graded_here(source: str | None, template: str, args: dict[str, Any], answer: str) -> dict[str, Any]:
    from proctor.channel.grades import grade_frame

    performance = performance_of(source, template, args)
    try:
        await performance.begin()
        return grade_frame(await performance.settle(answer))
    finally:
        await performance.close()


# Where it is served


async def reached(url: str) -> Channel:
    from proctor.channel.client import connect

    return await connect(url, os.environ.get(TOKEN_VARIABLE))


async def listed(url: str) -> list[dict[str, Any]]:
    channel = await reached(url)
    try:
        entries: list[dict[str, Any]] = (await asked(channel, "tasks.list", {})).get("tasks") or []
        return entries
    finally:
        await channel.close()


async def started_at(url: str, template: str, args: dict[str, Any]) -> tuple[Any, str]:
    channel = await reached(url)
    frame = await asked(channel, "tasks.start", {"id": template, "args": args})
    channel.wire.close()  # without a good-bye: the task is to wait there
    return frame.get("prompt"), channel.greeting.session_id


async def graded_at(
    url: str, template: str | None, args: dict[str, Any], session: str | None, answer: str
) -> dict[str, Any]:
    channel = await reached(url)
    try:
        if session is not None:
            await refused_kindly(channel.hello(session))
        if template is not None:
            await asked(channel, "tasks.start", {"id": template, "args": args})
        return await asked(channel, "tasks.grade", {"answer": answer})
    finally:
        await channel.close()


async def asked(channel: Channel, method: str, params: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = await refused_kindly(channel.ask(method, params))
    return answer


async def refused_kindly(asking: Coroutine[Any, Any, Any]) -> Any:
    from proctor.channel.frames import NO_TASK, RemoteError

    try:
        return await asking
    except RemoteError as error:
        hint = "; start one with: proctor task start" if str(error) == NO_TASK else ""
        if "parked sessions" in str(error):
            hint = ", here by --session"
        raise ProctorError(f"{error}{hint}") from error
