"""A server for the pages of sources and datasets: a repository, two datasets, and four people.

`ada` owns the source and the datasets, `rita` has a session that may only read, `sam` sees nothing of ada's.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.runner.repositories import Checkout, make_checkout
from tests.server.datasets.pushing import push_rows
from tests.server.serving import Api, Served, serving, settings_in

REGISTRY = """
[[endpoint]]
endpoint_id = "parrot"
model = "parrot"
type = "scripted"
"""
RECIPE = """\
[experiment]
rollout = "math"
entrypoint = "main.py"
model_path = "parrot"
dataset = "{dataset}"

[evaluation]
limit = "all"
"""
HOSTILE_NAME = "<img src=x onerror=alert(1)>"
HOSTILE_RECIPE = f"configs/eval/{HOSTILE_NAME}.toml"
ROWS = b'{"user_prompt": "say four", "ground_truth": "four"}\n' * 4
HOSTILE_ROWS = b'{"<b>column</b>": "<script>alert(1)</script>", "note": "\\u202etxt"}\n'


class Bench(NamedTuple):
    server: Served
    people: dict[str, Api]
    checkout: Checkout
    source: str
    """The id of ada's source, synced."""

    @property
    def url(self) -> str:
        return self.server.url


@contextmanager
def open_bench(folder: Path) -> Iterator[Bench]:
    checkout = make_checkout(folder / "git")
    checkout.commit(
        {
            "configs/eval/math.toml": RECIPE.format(dataset="sums"),
            "configs/eval/absent.toml": RECIPE.format(dataset="absent"),
            "configs/eval/broken.toml": "[experiment\n",
            HOSTILE_RECIPE: RECIPE.format(dataset="sums"),
        },
        "Add <script>alert(1)</script> recipes",
    )
    checkout.push()
    registry = folder / "endpoints.toml"
    registry.write_text(REGISTRY)
    settings = settings_in(folder, source_paths=(folder / "git",), endpoints=registry)
    with serving(settings) as server:
        people = {name: server.user(name) for name in ("ada", "sam")}
        people["rita"] = Api(server.url, make_reader(people["ada"]))
        push_rows(people["ada"], "ada", "sums", ROWS, rows=4)
        push_rows(people["ada"], "ada", "strange", HOSTILE_ROWS, visibility="public")
        ada = people["ada"]
        source = ada.post("/sources", {"url": str(checkout.remote), "name": "agents"})["source"]["id"]
        ada.post(f"/sources/{source}/sync")
        yield Bench(server, people, checkout, source)


def make_reader(api: Api) -> str:
    """A token of ada's that may only read: what she may see, without what she may do."""
    scopes = ["environments:read", "runs:read"]
    return str(api.post("/tokens", {"name": "reader", "scopes": scopes})["secret"])
