"""An environment that imports verifiers, in a virtual environment that is really built: played with workers,
killed and resumed, checked, and refused with one sentence where it cannot be loaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.dialects.killing import SECONDS, kill_run

if TYPE_CHECKING:
    from tests.conftest import Provider, Ran

SOURCE = '''"""Sums of two numbers."""
import verifiers as vf

ROWS = [{"question": f"What is {n} + 1?", "answer": str(n + 1)} for n in range(8)]


def right(completion, answer):
    """1 if the answer is the sum."""
    return completion[-1]["content"] == answer


def load_environment(bonus: float = 0.0) -> vf.SingleTurnEnv:
    return vf.SingleTurnEnv(ROWS, vf.Rubric([right], [1.0 + bonus]))
'''
SUMS = {f"What is {n} + 1?": str(n + 1) for n in range(8)}
Play = Callable[..., "Ran"]


@pytest.fixture
def play(proctor: Callable[..., Ran], stand_in: Mapping[str, str]) -> Play:
    def run(*words: str, environ: Mapping[str, str] | None = None) -> Ran:
        return proctor(*words, environ={**stand_in, **(environ or {})}, timeout=SECONDS)

    return run


@pytest.fixture
def sums(tmp_path: Path) -> Path:
    file = tmp_path / "sums.py"
    file.write_text(SOURCE)
    return file


def evaluate(file: Path, url: str, *more: str) -> list[str]:
    return ["eval", "run", str(file), "-n", "-1", "-r", "1", "-m", "m", "-b", url, "--json", "-s", *more]


def list_venvs(stand_in: Mapping[str, str]) -> list[Path]:
    return sorted(Path(stand_in["XDG_CACHE_HOME"]).glob("proctor/dialects/*/rollout.json"))


# A virtual environment


def test_it_is_built_once_by_content_and_reused(
    play: Play, sums: Path, provider: Callable[..., Provider], stand_in: Mapping[str, str], tmp_path: Path
) -> None:
    url = provider(SUMS).url
    first = play(*evaluate(sums, url, "--isolated"))
    built = list_venvs(stand_in)
    edited = tmp_path / "other_name.py"
    edited.write_text(SOURCE + "\nEDITED = True\n")
    second = play(*evaluate(edited, url, "--isolated"), environ={"PIP_FIND_LINKS": "/nowhere"})

    assert (first.code, second.code) == (0, 0), first.stderr + second.stderr
    assert [row["reward"] for row in first.rows] == [1.0] * 8
    assert "Installing what" not in second.stderr
    assert list_venvs(stand_in) == built


def test_arguments_and_overrides_reach_it(play: Play, sums: Path, provider: Callable[..., Provider]) -> None:
    words = ["-a", '{"bonus": 0.5}', "-x", '{"sampling_args": {"temperature": 0.25}}']
    server = provider(SUMS)
    ran = play(*evaluate(sums, server.url, *words))

    assert ran.code == 0, ran.stderr
    assert {row["reward"] for row in ran.rows} == {1.5}
    assert {request.body["temperature"] for request in server.requests} == {0.25}


@pytest.mark.parametrize(
    ("body", "said"),
    [("raise KeyError('moon')", "moon"), ("return None", "NoneType"), ("return later()", "cheese")],
    ids=["raises", "gives nothing", "raises when awaited"],
)
def test_a_reward_function_without_a_number_is_a_graders_error_and_not_a_zero(
    play: Play, sums: Path, provider: Callable[..., Provider], body: str, said: str
) -> None:
    later = "async def later():\n    raise ValueError('cheese')\n\n\n"
    sums.write_text(
        SOURCE.replace("def right", f"{later}def right").replace("return completion[-1]", f"{body}  # ")
    )
    ran = play(*evaluate(sums, provider(SUMS).url, "-n", "1"))

    assert [row["outcome"] for row in ran.rows] == ["grader_error"], ran.stderr
    assert said in json.dumps(ran.rows[0]["error"])
    assert "right" in json.dumps(ran.rows[0]["error"])


# Workers, kills and resume


def test_workers_play_it(play: Play, sums: Path, provider: Callable[..., Provider]) -> None:
    ran = play(*evaluate(sums, provider(SUMS).url, "-w", "2"))

    assert ran.code == 0, ran.stderr
    assert sorted(row["example_id"] for row in ran.rows) == list(range(8))
    assert {row["reward"] for row in ran.rows} == {1.0}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_that_is_killed_resumes_and_leaves_no_process(
    play: Play,
    sums: Path,
    provider: Callable[..., Provider],
    stand_in: Mapping[str, str],
    tmp_path: Path,
    workers: str,
) -> None:
    stuck: dict[str, Any] = {**SUMS, "What is 5 + 1?": [{"hangs": True}, "6"]}
    words = evaluate(sums, provider(stuck).url, "-c", "4", "-w", workers, "-o", "out")
    folder = kill_run(words, tmp_path, stand_in, tmp_path / "out", rows=4)

    again = play(*words, "--resume", str(folder))

    assert again.code == 0, again.stderr
    rows = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    assert sorted(row["example_id"] for row in rows) == list(range(8))
    assert {row["reward"] for row in rows} == {1.0}


def test_a_process_that_is_killed_under_a_run_is_replaced(
    play: Play, tmp_path: Path, provider: Callable[..., Provider]
) -> None:
    mark = tmp_path / "died"
    file = tmp_path / "sums.py"
    dying = f"    import os, pathlib\n    mark = pathlib.Path({str(mark)!r})\n"
    dying += (
        "    if answer == '3' and not mark.exists():\n        mark.touch()\n        os.kill(os.getpid(), 9)\n"
    )
    file.write_text(SOURCE.replace("    return completion[-1]", dying + "    return completion[-1]"))
    ran = play(*evaluate(file, provider(SUMS).url, "-c", "1", "--max-retries", "1"))

    assert mark.exists()
    assert ran.code == 0, ran.stderr
    assert [row["reward"] for row in sorted(ran.rows, key=lambda row: row["example_id"])] == [1.0] * 8


# A check


CHECKED = SOURCE.replace('completion[-1]["content"]', "PARSER.parse_answer(completion)").replace(
    "ROWS =", 'PARSER = vf.XMLParser(["think", "answer"])\nROWS ='
)


def test_a_check_of_a_sound_environment_raises_no_alarm(play: Play, sums: Path) -> None:
    sums.write_text(CHECKED.replace("vf.Rubric([right], [1.0 + bonus])", "vf.Rubric([right]), parser=PARSER"))
    ran = play("env", "check", str(sums))

    assert ran.code == 0, ran.stdout
    assert "oracle 1.000" in ran.stdout
    assert "gold in the parser's format" in ran.stdout


# What cannot be loaded


@pytest.mark.parametrize(
    ("source", "sentences"),
    [
        (
            SOURCE.replace("ROWS =", "raise RuntimeError('the moon is full')\nROWS ="),
            ["cannot be loaded: RuntimeError: the moon is full", "sums.py:4", "traceback is in the log"],
        ),
        (
            SOURCE.replace("ROWS =", "import moonlight\nROWS ="),
            ["imports 'moonlight', which is not installed in its virtual environment", "`dependencies`"],
        ),
        (
            SOURCE.replace(
                "    return vf.Single",
                "    from urllib import request; request.urlopen('http://127.0.0.1:9')\n    return vf.Single",
            ),
            [
                "needs data that cannot be reached from here",
                "refused (",
                "sums.py:13",
                "Run it once with a net",
            ],
        ),
        (
            '# /// script\n# requires-python = ">=3.99"\n# ///\n' + SOURCE,
            ["requires Python >=3.99", "no other Python here fits", "Install one"],
        ),
        (
            '# /// script\n# dependencies = ["moonlight>=1"]\n# ///\n' + SOURCE,
            ["requires (moonlight>=1, verifiers<0.2) cannot be installed", "check the network"],
        ),
        (
            SOURCE.replace("ROWS =", "import os; print('the moon is down', flush=True); os._exit(4)\nROWS ="),
            ["the process of sums", "the moon is down"],
        ),
    ],
    ids=["import fails", "dependency missing", "no network", "another Python", "not installable", "dies"],
)
def test_what_cannot_be_loaded_is_explained_in_one_sentence(
    play: Play, sums: Path, provider: Callable[..., Provider], source: str, sentences: list[str]
) -> None:
    sums.write_text(source)
    server = provider(SUMS)
    ran = play(*evaluate(sums, server.url))

    assert ran.code == 2, ran.stderr
    assert all(sentence in ran.stderr for sentence in sentences), ran.stderr
    assert "Traceback" not in ran.stderr
    assert server.requests == [], "nothing was paid for"
