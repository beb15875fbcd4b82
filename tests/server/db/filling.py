"""A server's data as people leave it: something in every table that a request can write.

Only requests that every version of the server understands, so that an older one can be filled as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tests.server.hub.packages import made, push
from tests.server.serving import Api

REGISTRY = '[[endpoint]]\nendpoint_id = "parrot"\nmodel = "parrot"\ntype = "scripted"\n'
ROWS = [
    {"example_id": 1, "rollout": 0, "outcome": "scored", "reward": 1.0, "metrics": {"right": 1.0}},
    {"example_id": "two", "rollout": 0, "outcome": "model_error", "error": {"error": "ModelError"}},
]
LINES = [{"level": "INFO", "text": "hello", "at": 1.0}]
CHAT = {"model": "parrot", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}


class Filled(NamedTuple):
    """What must still be there after an upgrade."""

    token: str
    """Ada's."""
    upload: str
    hosted: str


def fill(root: Api, folder: Path) -> Filled:
    token = str(root.post("/users", {"name": "ada"})["token"])
    ada = Api(root.url, token)
    fill_hub(ada, folder)
    upload, hosted = fill_runs(root, ada)
    return Filled(token, upload, hosted)


def fill_hub(ada: Api, folder: Path) -> None:
    ada.post("/teams", {"name": "robots"}, **{"Idempotency-Key": "robots"})
    assert push(ada, made(folder, "sums"), visibility="public").status == 201
    sums = "/environments/ada/sums"
    ada.ok("PUT", f"{sums}/collaborators", {"name": "robots", "role": "read"})
    secret = ada.post("/secrets", {"name": "SHARED_KEY", "value": "basil"})
    ada.ok("PUT", f"{sums}/secrets/links/{secret['id']}")
    ada.post(f"{sums}/secrets", {"name": "SUMS_KEY", "value": "tomatoes", "description": "of the sums"})
    ada.post(f"{sums}/variables", {"name": "REGION", "value": "north"})


def fill_runs(root: Api, ada: Api) -> tuple[str, str]:
    root.ok("PUT", "/prices/parrot", {"input_usd_per_million": 1.0, "output_usd_per_million": 2.0})
    root.post("/grants", {"owner": "ada", "amount_usd": 5, "note": "welcome"})
    ada.post("/v1/chat/completions", CHAT)
    metadata: dict[str, Any] = {"config": {"seed": 7}, "pass_threshold": 1.0}
    new = {
        "client_run_id": "local-1",
        "environment": "sums",
        "model": "m",
        "metadata": metadata,
        "planned": 2,
    }
    upload = str(ada.post("/uploads", new)["id"])
    ada.post(f"/uploads/{upload}/reports", {"batch": 1, "rows": ROWS, "logs": LINES})
    ada.post(f"/uploads/{upload}/end", {"status": "finished", "metadata": metadata})
    wanted = {"environment": "ada/sums", "model": "parrot", "custom_secrets": {"OWN_KEY": "pepper"}}
    hosted = ada.post("/runs", {**wanted, "name": "nightly", "max_cost_usd": 1})
    return upload, str(hosted["id"])
