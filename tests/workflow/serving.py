"""A rollout server of the standard library, as an author might write one: `PROTOCOL` says how it reports.

It answers "say X" with what the model says; the label decides how the attempt goes.
"""

from __future__ import annotations

import json
import os
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROTOCOL = os.environ.get("PROTOCOL", "callbacks")
results: dict[str, dict[str, Any]] = {}
cancelled: set[str] = set()
admitted: list[str] = []


def post(url: str, body: dict[str, Any], key: str) -> Any:
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=10) as response:
        return json.load(response)


def work(asked: dict[str, Any]) -> None:
    own = asked["rollout_id"]
    results[own] = {"rollout_id": own, "status": "running"}
    body = {"model": "any", "messages": asked["initial_messages"]}
    try:
        reply = post(f"{asked['chat_completions_url']}/chat/completions", body, asked["llm_api_key"])
    except OSError as error:
        report(asked, "completion", {"status": "failure", "err_message": str(error)})
        return
    messages = [*asked["initial_messages"], reply["choices"][0]["message"]]
    label = asked["label"]
    if label == "die":
        os._exit(3)
    while label == "hang" and own not in cancelled:
        time.sleep(0.02)
    if label == "crash":
        report(
            asked, "completion", {"status": "failure", "err_message": "boom", "err_category": "agent_error"}
        )
        return
    report(asked, "completion", {"status": "grading" if PROTOCOL == "polling" else "success"})
    sample: dict[str, Any] = {"messages": messages, "reward": 1.0, "metrics": {"length": 3, "note": "x"}}
    if label == "skip":
        sample = {"messages": messages, "remove_sample": True}
    if label == "ungraded":
        sample = {"messages": messages, "reward": None}
    if label == "bad grader":
        report(asked, "grader", {"status": "failure", "err_message": "no rubric"})
        return
    report(asked, "grader", {"status": "success", "sample": sample})


def report(asked: dict[str, Any], kind: str, body: dict[str, Any]) -> None:
    results[asked["rollout_id"]] = {"rollout_id": asked["rollout_id"], **body}
    if PROTOCOL == "polling":
        time.sleep(0.2)  # so that a poll sees each state
    else:
        post(asked[f"{kind}_callback_url"], body, asked["controller_api_key"])


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        own = self.path.split("/")[2] if self.path.startswith("/rollout/") else ""
        if self.path == "/health":
            self.answer(200, {"status": "ok", "instance_id": os.environ["_OSMOSIS_ROLLOUT_INSTANCE_ID"]})
        elif own not in results:
            self.answer(404, {"detail": "unknown rollout"})
        elif self.path.endswith("/result") and self.headers["X-Osmosis-Rollout-Lease"] != f"lease {own}":
            self.answer(403, {"detail": "invalid polling lease"})
        else:
            time.sleep(0.02)
            self.answer(200, results[own])

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/rollout/cancel":
            cancelled.update(asked["ids"])
            self.answer(200, {"dispositions": {}})
            return
        if asked["label"] == "refuse":
            self.answer(422, {"detail": "no such label"})
            return
        admitted.append(asked["rollout_id"])
        if asked["label"] == "busy" and len(admitted) % 2:
            self.answer(429, {"detail": "full"}, {"retry-after": "0.1"})
            return
        threading.Thread(target=work, args=(asked,), daemon=True).start()
        lease = {"polling_lease_token": f"lease {asked['rollout_id']}"} if PROTOCOL == "polling" else {}
        self.answer(202, {"status": "queued", **lease})

    def answer(self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", int(os.environ["_OSMOSIS_ROLLOUT_PORT"])), Handler).serve_forever()
