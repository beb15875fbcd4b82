"""Rollouts of every shape for the pages that show one: played by the engine, or written as a file may be.

Long ones are a played row with a longer conversation; a foreign one has only what verifiers writes.
"""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from proctor import JudgeRubric, Rubric, SingleTurnEnv
from proctor.evaluation.execute import Result
from proctor.models.scripted import Scripted, Step
from proctor.reading.entries import task_key
from proctor.task import TaskId
from tests.web.hostile_content import HOSTILE_TEXTS, long_line
from tests.web.played_runs import equal, play, play_hostile, play_shop, play_sums

Fields = dict[str, Any]

FORMULA = (
    "## Steps\n\n1. Add: \\(40 + 2\\)\n2. It costs $5.00.\n\n```python\nprint(40 + 2)\n```\n\n$$x^2 = 4$$"
)
WORKSHOP = """
from proctor import Environment

env = Environment("workshop")
work = env.workspace(isolation="none")


@env.template()
async def write():
    (work.path / "old.txt").write_text("old\\n")
    yield "Write it."
    yield float((work.path / "new.txt").exists())


tasks = [write()]
"""
MANY_EVENTS = 10_000
LARGE_BYTES = 10_000_000
LONG_TEXT = 300_000
NEEDLE = "a needle in the haystack"
"""In event 7,000 of the long trace, and nowhere else."""


def play_traces(folder: Path) -> dict[str, str]:
    """The addresses of rollouts by name: RUN/KEY/NUMBER, as `/diff` has them."""
    sums = play_sums(folder).folder
    shop = play_shop(folder).folder
    hostile = play_hostile(folder).folder
    found = {
        "right": address(sums, 4, 0),
        "wrong": address(sums, 4, 2),
        "refused": address(sums, 11, 0),
        "shop": address(shop, 0, 0),
        "judged": address(play_judged(folder).folder, 0, 0),
        "retried": address(play_retried(folder).folder, 0, 0),
        "workshop": first_address(play_workshop(folder).folder),
        "pictures": address(play_pictures(folder).folder, 0, 0),
        "many events": address(write_variant(sums, folder / "evals/many--long", add_many_events), 0, 0),
        "large": address(write_variant(sums, folder / "evals/large--long", add_large_texts), 0, 0),
        "long text": address(write_variant(sums, folder / "evals/long--long", add_long_text), 0, 0),
        "one line": address(write_variant(sums, folder / "evals/line--long", add_long_line), 0, 0),
        "foreign": address(write_variant(sums, folder / "evals/foreign--long", keep_little), 0, 0),
    }
    kinds = enumerate(HOSTILE_TEXTS)
    return found | {f"hostile {kind}": address(hostile, number, 0) for number, kind in kinds}


class TraceSite(NamedTuple):
    """Pages that show these rollouts, whatever store they are in."""

    url: str
    rollouts: Mapping[str, str]
    token: str = ""
    """To log in with; empty where there is no login."""

    def path(self, name: str) -> str:
        run, key, number = self.rollouts[name].split("/")
        return f"/runs/{run}/t/{key}/{number}"

    def diff(self, a: str, b: str) -> str:
        return f"/diff?a={self.rollouts[a]}&b={self.rollouts[b]}"


def address(folder: Path, task: TaskId, number: int) -> str:
    return f"{folder.name}/{task_key(task)}/{number}"


def first_address(folder: Path) -> str:
    """Of a run whose tasks have names that the environment chose."""
    row = json.loads((folder / "results.jsonl").read_text(encoding="utf-8").partition("\n")[0])
    return address(folder, row["example_id"], row["rollout"])


def play_judged(folder: Path) -> Result:
    """An answer with a formula and code, which a judge accepts."""
    rubric = JudgeRubric(judge=Scripted(["It is **well done**.\nyes"], "judge-model"))
    environment = SingleTurnEnv([{"question": "What is 40 + 2?", "answer": "42"}], rubric=rubric)
    return play(environment, Scripted([FORMULA], "solver"), folder)


def play_retried(folder: Path) -> Result:
    """The first attempt fails, the second answers."""
    script: list[str | Step | BaseException] = [Step(error="timeout", text="the model was busy"), "4"]
    environment = SingleTurnEnv([{"question": "What is 2 + 2?", "answer": "4"}], rubric=Rubric(equal))
    return play(environment, Scripted(script, "hesitant"), folder, max_retries=1)


def play_workshop(folder: Path) -> Result:
    """An agent that creates one file and deletes another."""
    source = folder / "workshop.py"
    source.write_text(WORKSHOP, encoding="utf-8")
    command = "printf 'one\\ntwo\\n' > new.txt; rm old.txt; printf '\\033[32mgreen\\033[0m'"
    call = {"name": "bash", "arguments": {"command": command}}
    return play(str(source), Scripted([Step(tool_calls=[call]), "Done."], "smith"), folder)


def play_pictures(folder: Path) -> Result:
    """A question with a small picture, a large one, a foreign one, and one that is a document."""
    urls = [
        data_url("image/png", draw_png(64)),
        data_url("image/png", draw_png(700)),
        "https://evil.example/pixel.png",
        data_url("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"),
    ]
    content: list[Fields] = [{"type": "text", "text": "What is on them?"}]
    content += [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    rows = [{"prompt": [{"role": "user", "content": content}], "answer": "squares"}]
    return play(SingleTurnEnv(rows, rubric=Rubric(equal)), Scripted(["squares"], "seer"), folder)


def data_url(media_type: str, data: bytes) -> str:
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"


def draw_png(side: int) -> bytes:
    """A square of noise-free stripes; stored uncompressed, so that a large one is large."""
    lines = b"".join(b"\0" + bytes((x * y) % 251 for x in range(3 * side)) for y in range(side))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(lines, 0))
        + chunk(b"IEND", b"")
    )


# Rows that no test has the time to play


def write_variant(source: Path, folder: Path, change: Callable[[Fields], Fields]) -> Path:
    """A run whose only row is a changed one of another run."""
    target = folder / f"{folder.name.partition('-')[0]}-{source.name}"
    target.mkdir(parents=True)
    (target / "metadata.json").write_bytes((source / "metadata.json").read_bytes())
    first = (source / "results.jsonl").read_text(encoding="utf-8").partition("\n")[0]
    row = change(json.loads(first) | {"example_id": 0, "rollout": 0})
    (target / "results.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return target


def add_many_events(row: Fields) -> Fields:
    """Calls and messages in turns, one call of them failed, as a long agent leaves them."""
    messages: list[Fields] = []
    calls: list[Fields] = []
    start = row["timing"]["start_time"]
    for turn in range(MANY_EVENTS // 2):
        text = NEEDLE if turn == 3_500 else f"Turn {turn}: " + "thinking aloud about it. " * (turn % 12)
        calls.append(
            {
                "role": "agent",
                "model": "long",
                "messages": len(row["prompt"]) + len(messages),
                "reply": len(row["prompt"]) + len(messages),
                "start": start + turn / 10,
                "seconds": 0.08,
                "finish_reason": "stop",
                "usage": {"input_tokens": 10 * turn, "output_tokens": 12},
            }
        )
        messages.append({"role": "assistant", "content": text})
        messages.append({"role": "user", "content": f"Go on, {turn}."})
    total = MANY_EVENTS / 20
    timing = row["timing"] | {"total": total, "generation": span(start, total), "scoring": span(start, 0.0)}
    return row | {"completion": messages, "model_calls": calls, "timing": timing}


def span(start: float, seconds: float) -> Fields:
    return {"start": start, "end": start + seconds, "duration": seconds}


def add_large_texts(row: Fields) -> Fields:
    """200 messages of 50,000 characters each."""
    size = LARGE_BYTES // 200
    paragraph = "A **long** paragraph with `code`, a [link](https://example.com) and some words more. "
    messages = [
        {
            "role": "assistant" if turn % 2 == 0 else "user",
            "content": fill(f"# Part {turn}\n\n", paragraph, size),
        }
        for turn in range(200)
    ]
    return row | {"completion": messages, "model_calls": []}


def fill(head: str, words: str, size: int) -> str:
    paragraph = words * 5 + "\n\n"
    return (head + paragraph * (size // len(paragraph) + 1))[:size]


def add_long_text(row: Fields) -> Fields:
    """One text beyond what a page draws at once, with its end worth seeing."""
    lines = "".join(f"line {number} of the long text\n" for number in range(LONG_TEXT // 24))
    return row | {"completion": [{"role": "assistant", "content": lines + "THE END"}], "model_calls": []}


def add_long_line(row: Fields) -> Fields:
    return row | {"completion": [{"role": "assistant", "content": long_line() + "END"}], "model_calls": []}


def keep_little(row: Fields) -> Fields:
    """As verifiers writes a row: no calls, no times, no parts of the reward."""
    return {
        "example_id": 0,
        "task": "sums",
        "prompt": row["prompt"],
        "completion": [{"role": "assistant", "content": "2"}],
        "reward": 1.0,
        "answer": "2",
        "generation_ms": 1200.0,
    }
