"""A tiny command-line agent: a prompt on the standard input, one bash tool, an answer on the standard output.

    echo "How many files are here?" | python -m proctor.agents.mini

It calls the chat completions API at OPENAI_BASE_URL with the key OPENAI_API_KEY. It is one file that needs
only the standard library, so it runs wherever there is a python3, even where Proctor is not installed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from typing import Any

MOST_STEPS = 100
COMMAND_SECONDS = 120
REQUEST_SECONDS = 900
KEPT_BYTES = 20_000

BASH = {
    "type": "function",
    "function": {
        "name": "bash",
        "description": "Run a command in a shell, in the folder you work in. Between commands only files are "
        "kept.",
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    },
}

Message = dict[str, Any]


def main() -> int:
    prompt = sys.stdin.read()
    try:
        answer = work(prompt)
    except urllib.error.HTTPError as error:
        print(
            f"mini: the model answered {error.code}: {error.read().decode(errors='replace')}", file=sys.stderr
        )
        return 1
    except (OSError, ValueError, LookupError) as error:
        print(f"mini: {type(error).__name__}: {error}", file=sys.stderr)
        return 1
    print(answer)
    return 0


def work(prompt: str) -> str:
    messages: list[Message] = [{"role": "user", "content": prompt}]
    for _ in range(MOST_STEPS):
        message = ask(messages)
        messages.append(message)
        calls = message.get("tool_calls") or []
        if not calls:
            return message.get("content") or ""
        for call in calls:
            result = run(call["function"]["name"], call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise ValueError(f"no answer after {MOST_STEPS} steps")


def ask(messages: list[Message]) -> Message:
    url = os.environ.get("OPENAI_BASE_URL", "https://api.openai.com/v1").rstrip("/")
    body = {"model": os.environ.get("OPENAI_MODEL", "gpt-4.1-mini"), "messages": messages, "tools": [BASH]}
    headers = {
        "authorization": f"Bearer {os.environ.get('OPENAI_API_KEY', '')}",
        "content-type": "application/json",
    }
    request = urllib.request.Request(f"{url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=REQUEST_SECONDS) as response:
        message: Message = json.load(response)["choices"][0]["message"]
    return message


def run(name: str, arguments: str) -> str:
    """Run a call; mistakes are returned to the model."""
    try:
        command = json.loads(arguments)["command"]
    except (ValueError, LookupError, TypeError) as error:
        return f"The arguments cannot be read: {error}"
    if name != "bash" or not isinstance(command, str):
        return f"There is no tool {name!r} with these arguments; use bash, with a command."
    with tempfile.TemporaryFile() as output:  # a background process would keep a pipe open
        try:
            done = subprocess.run(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"Ended after {COMMAND_SECONDS} seconds."
        output.seek(max(0, output.seek(0, os.SEEK_END) - KEPT_BYTES))
        printed = output.read().decode(errors="replace")
    return printed if done.returncode == 0 else f"{printed}\n(exit code {done.returncode})"


if __name__ == "__main__":
    sys.exit(main())
