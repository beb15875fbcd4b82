"""The files of deploy/ say what the programs they start understand."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
import pytest
import yaml

from proctor.cli.commands.runner import runner_command
from proctor.cli.commands.server import server_command

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMMANDS: dict[str, click.Command] = {"server": server_command, "runner": runner_command}
FILES = [
    "systemd/proctor-server.service",
    "systemd/proctor-runner.service",
    "Dockerfile",
    "compose/compose.yaml",
]
TEMPLATES = ["server", "runner", "raycluster"]


def find_commands(text: str) -> Iterator[tuple[str, list[str]]]:
    """Each `server` or `runner` that is started, with its options."""
    for line in text.splitlines():
        if line.startswith("ExecStart=/opt/proctor/bin/proctor "):
            _, name, *words = shlex.split(line.partition("=")[2])
            yield name, words
        elif found := re.match(r"(?:CMD|\s+command:) \[\"?(server|runner)\b\"?, (.*--.*)\]", line):
            yield found[1], [word.strip(' "') for word in found[2].split(",")]
    for name, block in re.findall(r"- (server|runner)\n((?:\s+(?:- .*|\{\{.*)\n)+)", text):
        yield name, re.findall(r"- (--[^\n]*)", block)


def list_options(command: click.Command) -> set[str]:
    return {name for option in command.params for name in (*option.opts, *option.secondary_opts)}


@pytest.mark.parametrize("file", [*FILES, *(f"helm/proctor/templates/{name}.yaml" for name in TEMPLATES)])
def test_every_option_is_one_that_the_command_has(file: str) -> None:
    started = list(find_commands((DEPLOY / file).read_text()))
    assert started, "no command was found"
    for name, words in started:
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert given, (file, name)
        assert given <= list_options(COMMANDS[name]), (file, name)


def test_the_image_is_built_from_what_the_build_needs_and_nothing_private() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    assert copied_sources() <= kept
    for source in copied_sources():
        assert (ROOT / source).exists(), source
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    assert [line for line in lines if line.startswith("USER")] == ["USER 10001:10001"]


def test_a_runner_that_plays_foreign_code_has_no_rights_and_reaches_the_server_alone() -> None:
    services = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
    networks = {name: set(each.get("networks", ["default"])) for name, each in services.items()}
    assert {name for name in networks if networks[name] & networks["runner"]} == {"runner", "server"}
    for name in ("server", "runner"):
        assert services[name]["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in services[name]["security_opt"]
    published = [port for each in services.values() for port in each.get("ports", [])]
    assert published == ["127.0.0.1:8700:8700"]


def copied_sources() -> set[str]:
    text = (DEPLOY / "Dockerfile").read_text()
    copies: Sequence[str] = re.findall(r"^COPY (?!--from)(.*)$", text, re.MULTILINE)
    return {source for copy in copies for source in copy.split()[:-1]}


def test_the_dashboard_file_has_a_place_and_a_query_for_every_panel() -> None:
    dashboard = json.loads((DEPLOY / "grafana/proctor.json").read_text())
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places) >= 15
    assert all(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
