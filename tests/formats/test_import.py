"""`proctor import`: what other tools recorded becomes ordinary runs, and nothing is made up."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from proctor.errors import ConfigError
from proctor.formats.detect import find_sources
from proctor.formats.saving import ImportedRun, save_run
from tests.formats.sources import (
    TRAJECTORY,
    harbor_trial,
    hud_spans,
    inspect_header,
    inspect_sample,
    promptfoo_result,
    verifiers_row,
    write_eval,
    write_job,
    write_promptfoo,
    write_spans,
    write_verifiers,
    write_zip_of,
)

if TYPE_CHECKING:
    from tests.conftest import Ran

Rows = dict[str, dict[str, Any]]


def import_path(path: Path, base: Path, reward: str | None = None) -> list[ImportedRun]:
    return [
        save_run(run, base) for found in find_sources(path) for run in found.format.read(found.path, reward)
    ]


def read_rows(run: ImportedRun) -> Rows:
    lines = (Path(run.folder) / "results.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    return {f"{row['example_id']}/{row['rollout']}": row for row in rows}


def read_metadata(run: ImportedRun) -> dict[str, Any]:
    return json.loads((Path(run.folder) / "metadata.json").read_text())  # type: ignore[no-any-return]


# Inspect


def test_an_inspect_log_becomes_a_run_with_its_tool_calls_and_judges(tmp_path: Path) -> None:
    log = write_eval(
        tmp_path / "log.eval", inspect_header(), [inspect_sample("one"), inspect_sample("two", "I")]
    )

    (run,) = import_path(log, tmp_path / "out")

    assert (run.tool, run.environment, run.model, run.reward) == ("inspect", "sums", "openai/gpt-5", 0.5)
    rows = read_rows(run)
    assert {key: row["reward"] for key, row in rows.items()} == {"one/0": 1.0, "two/0": 0.0}
    row = rows["one/0"]
    assert row["prompt"] == [{"role": "user", "content": "Sum one?"}]
    assert row["completion"] == [
        {
            "role": "assistant",
            "content": "calling",
            "reasoning_content": "Add.",
            "tool_calls": [{"id": "c1", "name": "add", "arguments": '{"x":1,"y":1}'}],
        },
        {"role": "tool", "content": "2", "tool_call_id": "c1"},
        {"role": "assistant", "content": "the answer is 2"},
    ]
    assert [(call["role"], call["messages"], call["reply"]) for call in row["model_calls"][:2]] == [
        ("agent", 1, 1),
        ("agent", 3, 3),
    ]
    judge = row["model_calls"][2]
    assert (judge["role"], judge["messages"]) == ("judge", [{"role": "user", "content": "Judge this."}])
    assert row["token_usage"] == {"input_tokens": 20, "output_tokens": 10, "cached_tokens": 8}
    assert row["other_usage"] == {
        "openai/gpt-5": {"input_tokens": 10, "output_tokens": 5, "cached_tokens": 4}
    }
    assert (row["answer"], row["info"], row["timing"]["total"]) == ("2", {"level": 3}, 1.5)


def test_a_run_says_where_it_was_imported_from(tmp_path: Path) -> None:
    log = write_eval(tmp_path / "log.eval", inspect_header(), [inspect_sample("one")])

    (run,) = import_path(log, tmp_path / "out")

    metadata = read_metadata(run)
    origin = metadata["imported"]
    assert (origin["tool"], origin["tool_version"], origin["run"]) == ("inspect", "0.3.285", "EvalOne")
    assert origin["source"] == str(log)
    assert (metadata["date"], metadata["time"]) == ("2026-01-02T03:04:05Z", 10.0)
    assert (metadata["planned"], metadata["settled"]) == (2, 1)


def test_a_sample_that_failed_has_an_error_and_no_reward(tmp_path: Path) -> None:
    error = {"message": "ValueError('no luck')", "traceback": "Traceback\n  boom"}
    samples = [
        inspect_sample("one", scores={}, error=error, events=[]),
        inspect_sample("two", limit={"type": "time", "limit": 5}),
        inspect_sample("three", limit={"type": "token", "limit": 5}),
        inspect_sample("four", value=float("nan")),
    ]
    (run,) = import_path(write_eval(tmp_path / "log.eval", inspect_header(), samples), tmp_path / "out")

    rows = read_rows(run)
    outcomes = {key: (row["outcome"], row["reward"]) for key, row in rows.items()}
    assert outcomes == {
        "one/0": ("environment_error", None),
        "two/0": ("timeout", 1.0),
        "three/0": ("truncated", 1.0),
        "four/0": ("grader_error", None),
    }
    assert (rows["one/0"]["error"]["error"], rows["one/0"]["error"]["message"]) == ("ValueError", "no luck")


def test_the_user_chooses_among_several_scores(tmp_path: Path) -> None:
    scores = {"both": {"value": {"a": 1.0, "b": 0.25}}}
    named = [{"name": part, "scorer": "both"} for part in ("a", "b")]
    header = inspect_header(results={"scores": named})
    log = write_eval(tmp_path / "log.eval", header, [inspect_sample("one", scores=scores)])

    (chosen,) = import_path(log, tmp_path / "out", "both.b")
    with pytest.raises(ConfigError, match=r"choose one with --reward: both\.a, both\.b"):
        import_path(log, tmp_path / "out")
    with pytest.raises(ConfigError, match=r"No score 'both\.c'.*did you mean"):
        import_path(log, tmp_path / "out", "both.c")

    assert chosen.reward == 0.25
    assert read_rows(chosen)["one/0"]["metrics"] == {"both.a": 1.0, "both.b": 0.25}


def test_a_log_compressed_with_zstandard_is_read(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    documents = {
        "samples/one_epoch_1.json": json.dumps(inspect_sample("one")).encode(),
        "header.json": json.dumps(inspect_header()).encode(),
    }
    packed = {name: zstandard.ZstdCompressor().compress(data) for name, data in documents.items()}
    sizes = {name: len(data) for name, data in documents.items()}

    (run,) = import_path(write_zip_of(tmp_path / "a.eval", packed, 93, sizes), tmp_path / "out")

    assert (run.rollouts, run.reward) == (1, 1.0)


def test_inspect_logs_in_json_are_read_too(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(json.dumps({**inspect_header(), "samples": [inspect_sample("one")]}))

    (run,) = import_path(log, tmp_path / "out")

    assert (run.tool, run.reward) == ("inspect", 1.0)


# verifiers


def test_a_verifiers_folder_becomes_a_run_and_its_rollouts_are_numbered(tmp_path: Path) -> None:
    failed = {
        "error": "ModelError",
        "error_chain_repr": "ModelError() -> 400",
        "error_chain_str": "ModelError",
    }
    rows = [verifiers_row(0), verifiers_row(1, 0.0), verifiers_row(0), verifiers_row(1, 0.0, error=failed)]
    folder = write_verifiers(tmp_path / "evals" / "sums--gpt-5" / "ab12", rows)

    (run,) = import_path(folder, tmp_path / "out")

    stored = read_rows(run)
    assert {key: (row["outcome"], row["reward"]) for key, row in stored.items()} == {
        "0/0": ("scored", 1.0),
        "1/0": ("scored", 0.0),
        "0/1": ("scored", 1.0),
        "1/1": ("model_error", None),
    }
    assert stored["1/1"]["reported_reward"] == 0.0
    assert stored["1/1"]["error"]["message"] == "ModelError() -> 400"
    assert stored["0/0"]["completion"][0]["tool_calls"] == [
        {"id": "c1", "name": "add", "arguments": '{"x": 2}'}
    ]
    assert stored["0/0"]["metrics"] == {"correct": 1.0}
    assert "correct" not in stored["0/0"]
    metadata = read_metadata(run)
    assert (metadata["env_args"], metadata["sampling_args"]) == ({"level": 2}, {"temperature": 0.5})
    assert metadata["date"] == "2026-11-16T19:52:48Z"  # of the first rollout; the metadata has none


def test_an_older_verifiers_row_gives_what_it_has_and_nothing_else(tmp_path: Path) -> None:
    row = {
        "example_id": 0,
        "prompt": "2+2?",
        "completion": "4",
        "answer": "4",
        "reward": 1.0,
        "correct": 1.0,
        "generation_ms": 250.0,
    }
    folder = write_verifiers(tmp_path / "evals" / "sums--gpt-5" / "ab12", [row])

    (run,) = import_path(folder / "results.jsonl", tmp_path / "out")

    stored = read_rows(run)["0/0"]
    assert stored["prompt"] == [{"role": "user", "content": "2+2?"}]
    assert stored["completion"] == [{"role": "assistant", "content": "4"}]
    assert (stored["metrics"], stored["timing"]) == ({"correct": 1.0}, {"generation": {"duration": 0.25}})
    assert (stored["token_usage"], stored["model_calls"]) == ({}, [])
    assert "is_truncated" not in stored


# Harbor


def test_a_harbor_job_becomes_one_run_per_agent_and_model(tmp_path: Path) -> None:
    other = {"name": "oracle", "version": "1", "model_info": None}
    timeout = {"exception_type": "AgentTimeoutError", "exception_message": "late", "exception_traceback": ""}
    broken = {
        "exception_type": "VerifierTimeoutError",
        "exception_message": "slow",
        "exception_traceback": "t",
    }
    trials = {
        "hello__a": harbor_trial("hello", {"reward": 1.0}),
        "hello__b": harbor_trial("hello", {"reward": 0.0}, exception_info=timeout),
        "chess__c": harbor_trial("chess", None, exception_info=broken),
        "hello__d": harbor_trial("hello", {"reward": 1.0}, agent_info=other),
    }
    job = write_job(tmp_path / "job", trials)
    (job / "hello__a" / "agent" / "trajectory.json").write_text(json.dumps(TRAJECTORY))

    first, second = sorted(import_path(job, tmp_path / "out"), key=lambda run: -run.rollouts)

    assert (first.environment, first.model) == ("terminal-bench", "openai/gpt-5")
    assert (second.model, second.rollouts) == ("oracle", 1)
    rows = read_rows(first)
    assert {key: (row["outcome"], row["reward"]) for key, row in rows.items()} == {
        "hello/0": ("scored", 1.0),
        "hello/1": ("timeout", 0.0),
        "chess/0": ("grader_error", None),
    }
    row = rows["hello/0"]
    assert row["prompt"] == [{"role": "user", "content": "Make a file."}]
    assert row["completion"][0]["tool_calls"][0]["arguments"] == '{"command":"touch a"}'
    assert row["completion"][1] == {"role": "tool", "content": "done", "tool_call_id": "c1"}
    assert row["token_usage"] == {"input_tokens": 20, "cached_tokens": 5, "output_tokens": 7}
    assert (row["timing"]["total"], row["timing"]["generation"]) == (30.0, {"duration": 10.0})
    assert read_metadata(first)["agent"] == "terminus"


def test_a_link_that_an_agent_left_in_its_trial_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(TRAJECTORY))
    job = write_job(tmp_path / "job", {"hello__a": harbor_trial("hello", {"reward": 1.0})})
    (job / "hello__a" / "agent" / "trajectory.json").symlink_to(secret)

    (run,) = import_path(job, tmp_path / "out")

    row = read_rows(run)["hello/0"]
    assert (row["prompt"], row["completion"], row["reward"]) == ([], [], 1.0)
    assert "not a regular file" in row["trajectory_problem"]


# HUD


def test_hud_traces_become_one_run_with_the_slugs_that_hud_gives(tmp_path: Path) -> None:
    spans = write_spans(tmp_path / "spans", {"aa": hud_spans("aa", 1.0, "apple"), "bb": hud_spans("bb", 0.0)})

    (run,) = import_path(spans, tmp_path / "out")

    assert (run.environment, run.model, run.reward) == ("count", "gpt-5", 0.5)
    rows = read_rows(run)
    row = rows["count-4fd5f263/0"]
    assert (row["reward"], row["trace_id"]) == (1.0, "aa")
    assert row["prompt"] == [{"role": "user", "content": "How many r in apple?"}]
    assert [message["role"] for message in row["completion"]] == ["assistant", "tool", "assistant"]
    assert row["info"] == {"template": "count", "args": {"word": "apple"}}
    assert row["token_usage"] == {"input_tokens": 14, "output_tokens": 4}
    assert row["timing"]["total"] == 6.0


def test_the_job_that_hud_prints_names_its_traces_and_their_slugs(tmp_path: Path) -> None:
    spans = write_spans(tmp_path / "spans", {"aa": hud_spans("aa", 1.0), "old": hud_spans("old", 0.0)})
    runs = [
        {"task_id": "count", "slug": "pear", "reward": 1.0, "is_error": False, "trace_id": "aa"},
        {"task_id": "count", "slug": "plum", "reward": None, "is_error": True, "trace_id": "../../gone"},
    ]
    (spans / "job.json").write_text(json.dumps({"job_id": "j1", "runs": runs}))

    job, rest = import_path(spans, tmp_path / "out")
    (alone,) = import_path(spans / "job.json", tmp_path / "alone")

    assert {key: row["reward"] for key, row in read_rows(job).items()} == {"pear/0": 1.0, "plum/0": None}
    assert rest.rollouts == 1
    assert alone.run == job.run


# promptfoo


def test_a_promptfoo_file_becomes_one_run_per_provider(tmp_path: Path) -> None:
    results = [
        promptfoo_result(0, 0, True, 1.0),
        promptfoo_result(1, 0, False, 0.75),
        promptfoo_result(0, 1, False, 0.0, failureReason=2, error="API error: 500", response={}),
        promptfoo_result(1, 1, True, 1.0),
    ]
    file = write_promptfoo(tmp_path / "results.json", results, repeat=2)

    first, second = import_path(file, tmp_path / "out")
    (by_score, _) = import_path(file, tmp_path / "score", "score")

    assert (first.environment, first.model, second.model) == ("Capitals", "openai:gpt-0", "openai:gpt-1")
    rows = read_rows(first)
    assert {key: row["reward"] for key, row in rows.items()} == {"0/0": 1.0, "0/1": 0.0}
    assert rows["0/1"]["metrics"] == {"pass": 0.0, "score": 0.75, "mentions": 1.0}
    assert read_rows(second)["0/0"]["error"]["message"] == "API error: 500"
    assert by_score.reward == 0.875


# Any of them


def test_importing_twice_replaces_the_run(tmp_path: Path) -> None:
    log = write_eval(tmp_path / "log.eval", inspect_header(), [inspect_sample("one")])
    (before,) = import_path(log, tmp_path / "out")
    write_eval(log, inspect_header(), [inspect_sample("one"), inspect_sample("two")])

    (after,) = import_path(log, tmp_path / "out")

    assert (before.is_new, after.is_new, after.folder) == (True, False, before.folder)
    assert len(read_rows(after)) == 2
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["evals"]


def test_the_commands_work_on_imported_runs(tmp_path: Path, proctor: Callable[..., Ran]) -> None:
    write_eval(tmp_path / "log.eval", inspect_header(), [inspect_sample("one"), inspect_sample("two", "I")])
    write_verifiers(tmp_path / "evals" / "sums--gpt-5" / "ab12", [verifiers_row(0)])

    imported = proctor("import", "log.eval", "evals", "--json")
    inspected, verified = json.loads(imported.stdout)["imported"]
    listed = proctor("jobs", inspected["run"])
    shown = proctor("trace", f"{inspected['run']}/one/0")
    exported = proctor("eval", "export", verified["run"], "--columns", "example_id,reward,completion")

    assert imported.code == 0, imported.stderr
    assert "imported from inspect" in listed.stdout
    assert "2 rollouts: 2 scored." in listed.stdout
    assert "→ add(x=1, y=1)" in shown.stdout
    assert exported.stdout.splitlines()[1].startswith("0,1.0,")
