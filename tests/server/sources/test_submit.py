"""From a checkout to a server and back, as people do it on the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.runner.repositories import Checkout
from tests.server.workplace import Person, Workplace, workplace

pytestmark = [pytest.mark.usefixtures("sandboxes"), pytest.mark.xdist_group("repositories")]

MAIN = '''\
"""Ask the model, and rate its answer."""

import asyncio
import json
import urllib.request

from proctor import AgentWorkflow, Grader

MARK = "{mark}"


def ask(url, key, model, messages):
    body = json.dumps({{"model": model, "messages": messages}}).encode()
    headers = {{"content-type": "application/json", "authorization": f"Bearer {{key}}"}}
    with urllib.request.urlopen(urllib.request.Request(url + "/chat/completions", body, headers)) as answer:
        return json.load(answer)["choices"][0]["message"]["content"]


class Workflow(AgentWorkflow):
    async def run(self, ctx):
        said = await asyncio.to_thread(ask, ctx.chat_completions_url, ctx.api_key, ctx.model, ctx.prompt)
        return [*ctx.prompt, {{"role": "assistant", "content": (said or "") + MARK}}]


class Check(Grader):
    async def grade(self, ctx):
        if ctx.label == "skip":
            ctx.skip("not for this model")
        ctx.set_reward(1.0 if ctx.label in ctx.sample.text else 0.25)
'''
RECIPE = """\
[experiment]
rollout = "math"
entrypoint = "main.py"
model_path = "parrot"
dataset = "sums"

[evaluation]
n = 2
batch_size = 4
"""
ENDPOINTS = '[[endpoint]]\nendpoint_id = "parrot"\nmodel = "parrot"\ntype = "scripted"\n'
RECIPE_FILE = "configs/eval/math.toml"


def rows(count: int = 40) -> str:
    labels = ["skip" if number % 7 == 0 else f"say {number}" for number in range(count)]
    return "".join(
        json.dumps({"user_prompt": f"say {number}", "ground_truth": label}) + "\n"
        for number, label in enumerate(labels)
    )


class Setting(NamedTuple):
    place: Workplace
    ada: Person
    checkout: Checkout

    def submit(self, *words: str) -> Any:
        said = self.ada.ok("eval", "submit", RECIPE_FILE, "--yes", "--wait", "--json", *words)
        return said.json["run"]

    def rows_of(self, run: Any) -> list[dict[str, Any]]:
        found = self.place.root("GET", f"/runs/{run['id']}/results.jsonl").body
        return [json.loads(line) for line in found.splitlines()]


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    folder = tmp_path_factory.mktemp("submit")
    checkout = Checkout(folder / "git")
    checkout.commit(
        {
            "rollouts/math/main.py": MAIN.format(mark=""),
            "rollouts/math/pyproject.toml": '[project]\nname = "math"\nversion = "0.1.0"\n',
            RECIPE_FILE: RECIPE,
            "configs/endpoints.toml": ENDPOINTS,
            "data/sums.jsonl": rows(),
            ".gitignore": "outputs/\n",
        }
    )
    checkout.push()
    with workplace(folder / "work", "--allow-source-path", str(folder / "git")) as place:
        ada = place.person("ada")
        ada.ok("source", "add", str(checkout.remote), "--name", "agents")
        ada.home = checkout.folder  # the command line is used there
        ada.__class__ = InCheckout
        yield Setting(place, ada, checkout)


class InCheckout(Person):
    """Ada, who stands in her checkout; her login is where it was."""

    @property
    def environ(self) -> dict[str, str]:
        home = self.home.parent.parent / "work" / "ada"
        own = {"HOME": home, "XDG_CONFIG_HOME": home / "config", "XDG_STATE_HOME": home / "state"}
        return {**super().environ, **{name: str(path) for name, path in own.items()}}


def brief(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(
        json.dumps(row.get(name), sort_keys=True)
        for name in ("example_id", "rollout", "reward", "outcome", "completion")
    )


def test_a_recipe_plays_the_same_rows_with_the_same_results_here_and_on_the_server(setting: Setting) -> None:
    local = setting.ada.ok("eval", "run", RECIPE_FILE, "--json", "-d").json
    here = [json.loads(line) for line in (Path(local["folder"]) / "results.jsonl").read_text().splitlines()]

    there = setting.rows_of(setting.submit())

    assert len(here) == 8
    assert sorted(map(brief, here)) == sorted(map(brief, there))


def test_each_run_plays_the_code_of_its_own_commit(setting: Setting) -> None:
    checkout = setting.checkout
    first = setting.submit()
    before = checkout.git("rev-parse", "HEAD")
    checkout.commit({"rollouts/math/main.py": MAIN.format(mark=" (B)")}, "Mark answers")
    checkout.push()
    second = setting.submit()
    pinned = RECIPE.replace("[evaluation]", f'commit_sha = "{before[:10]}"\n\n[evaluation]')
    checkout.write({RECIPE_FILE: pinned})
    third = setting.submit()
    checkout.write({RECIPE_FILE: RECIPE})

    assert all("(B)" not in json.dumps(row["completion"]) for row in setting.rows_of(first))
    assert all("(B)" in json.dumps(row["completion"]) for row in setting.rows_of(second))
    assert all("(B)" not in json.dumps(row["completion"]) for row in setting.rows_of(third))
    assert third["origin"]["commit_sha"] == before
    assert third["origin"]["config_hash"] == first["origin"]["config_hash"]
    history = setting.ada.ok("eval", "history", RECIPE_FILE).stdout
    assert before[:12] in history
    assert second["origin"]["commit_sha"][:12] in history
    assert second["name"] in setting.ada.ok("eval", "list").stdout


def test_code_that_cannot_be_imported_fails_its_run_with_the_author_s_line(setting: Setting) -> None:
    checkout = setting.checkout
    good = checkout.git("rev-parse", "HEAD")
    checkout.commit({"rollouts/math/main.py": "import proctor\nimport no_such_module\n"}, "Break it")
    checkout.push()

    said = setting.ada("eval", "submit", RECIPE_FILE, "--yes", "--wait", "--json")

    run = said.json["run"]
    assert (said.code, run["status"]) == (1, "failed")
    shown = setting.ada.ok("eval", "info", run["name"]).stdout
    assert "no_such_module" in shown
    assert "main.py" in shown
    assert "line 2" in shown.replace("main.py:2", "line 2")
    checkout.git("reset", "--hard", "--quiet", good)
    checkout.git("push", "--quiet", "--force", "origin", "HEAD:refs/heads/main")


def test_what_is_not_pushed_is_named_before_anything_starts(setting: Setting) -> None:
    checkout = setting.checkout
    pushed = checkout.git("rev-parse", "HEAD")
    checkout.commit({"rollouts/math/helper.py": "VALUE = 1\n"}, "Add a helper")
    checkout.write({"rollouts/math/main.py": MAIN.format(mark=" (dirty)")})

    said = setting.ada("eval", "submit", RECIPE_FILE)
    asked = setting.ada("eval", "submit", RECIPE_FILE, "--json")
    checkout.git("reset", "--hard", "--quiet", pushed)

    assert said.code == 2
    assert "Add a helper" in said.stderr
    assert "rollouts/math/main.py" in said.stderr
    assert "pass --yes" in said.stderr
    assert "attempts  8, 2 per row" in said.stderr
    assert asked.code == 2
    assert asked.json["code"] == "confirmation_required"
    assert asked.json["summary"]["commit_sha"] == pushed
    assert len(asked.json["warnings"]) == 2


def test_a_score_below_the_bar_fails_the_command(setting: Setting) -> None:
    said = setting.ada("eval", "submit", RECIPE_FILE, "--yes", "--fail-under", "1.01", "--rows", "1-2")

    assert said.code == 1
    assert "--fail-under asks for 1.01" in said.stderr


def test_a_run_is_found_and_downloaded_by_its_name(setting: Setting, tmp_path: Path) -> None:
    name = setting.submit("--rows", "1-3")["name"]

    setting.ada.ok("eval", "download", name, "--type", "all", "--rows", "2", "-o", str(tmp_path / "run"))

    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "logs.jsonl",
        "metadata.json",
        "results.jsonl",
    ]
    assert len((tmp_path / "run/results.jsonl").read_text().splitlines()) == 2
    assert "Attempt 1" in setting.ada.ok("eval", "logs", name).stdout
