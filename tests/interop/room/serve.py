"""Serves the deeds over the control channel with nothing but the standard library."""

from __future__ import annotations

import json
import os
import socketserver
from typing import Any

from deeds import DEEDS  # type: ignore[import-not-found]


class Session(socketserver.StreamRequestHandler):
    """One connection: a hello with the token, then deeds as tasks."""

    def handle(self) -> None:
        is_known = not os.environ.get("PROCTOR_SERVE_TOKEN")
        for line in self.rfile:
            frame = json.loads(line)
            params = frame.get("params", {})
            if frame["method"] == "hello":
                is_known = is_known or params.get("token") == os.environ["PROCTOR_SERVE_TOKEN"]
            answer = self.answer(frame["method"], params) if is_known else {"error": {"message": "no token"}}
            self.wfile.write(json.dumps({"jsonrpc": "2.0", "id": frame["id"], **answer}).encode() + b"\n")

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "tasks.start":
            return {"result": {"prompt": json.dumps(DEEDS[params["id"]]())}}
        return {"result": {"session_id": "1", "env": {"name": "room", "version": "1"}, "bindings": []}}


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


if __name__ == "__main__":
    Server(("0.0.0.0", 8765), Session).serve_forever()
