"""Result files in the shapes that other tools write, for the tests of `proctor import`."""

from __future__ import annotations

import json
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Document = dict[str, Any]


# Inspect


def inspect_header(**changes: Any) -> Document:
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "eval_id": "EvalOne",
            "created": "2026-01-02T03:04:05+00:00",
            "task": "sums",
            "dataset": {"samples": 2, "sample_ids": ["one", "two"]},
            "model": "openai/gpt-5",
            "model_generate_config": {"temperature": 0.5},
            "config": {"epochs": 1},
            "packages": {"inspect_ai": "0.3.285"},
            "scorers": [{"name": "includes"}],
        },
        "results": {"scores": [{"name": "includes", "scorer": "includes"}]},
        "stats": {"started_at": "2026-01-02T03:04:05+00:00", "completed_at": "2026-01-02T03:04:15+00:00"},
        **changes,
    }


def inspect_sample(name: str, value: Any = "C", **changes: Any) -> Document:
    """A sample with one tool call; `value` is what the scorer said."""
    question = {"id": "m1", "role": "user", "source": "input", "content": f"Sum {name}?"}
    called = {
        "id": "m2",
        "role": "assistant",
        "source": "generate",
        "content": [{"type": "reasoning", "reasoning": "Add."}, {"type": "text", "text": "calling"}],
        "tool_calls": [{"id": "c1", "function": "add", "arguments": {"x": 1, "y": 1}, "type": "function"}],
    }
    result = {"id": "m3", "role": "tool", "tool_call_id": "c1", "function": "add", "content": "2"}
    answer = {"id": "m4", "role": "assistant", "source": "generate", "content": "attachment://abc"}
    usage = {"input_tokens": 6, "input_tokens_cache_read": 4, "output_tokens": 5, "total_tokens": 15}

    def model_event(sent: Sequence[Any], reply: Document, span: str, reason: str) -> Document:
        choice = {"message": reply, "stop_reason": reason}
        return {
            "event": "model",
            "model": "openai/gpt-5",
            "span_id": span,
            "timestamp": "2026-01-02T03:04:06+00:00",
            "input": [],
            "input_refs": list(sent),
            "output": {"choices": [choice], "usage": usage, "time": 0.5},
        }

    judged = {"role": "assistant", "content": "GRADE: C"}
    return {
        "id": name,
        "epoch": 1,
        "input": question["content"],
        "target": "2",
        "messages": [question, called, result, answer],
        "scores": {"includes": {"value": value, "answer": "2", "explanation": "it is there"}},
        "metadata": {"level": 3},
        "events": [
            {"event": "span_begin", "id": "s1", "type": "solver"},
            model_event([[0, 1]], called, "s1", "tool_calls"),
            model_event([[0, 3]], answer, "s1", "stop"),
            {"event": "span_begin", "id": "s2", "type": "scorers"},
            {"event": "span_begin", "id": "s3", "type": "scorer", "parent_id": "s2"},
            model_event([[3, 4]], judged, "s3", "stop"),
        ],
        "attachments": {"abc": "the answer is 2"},
        "events_data": {"messages": [question, called, result, {"role": "user", "content": "Judge this."}]},
        "started_at": "2026-01-02T03:04:05+00:00",
        "total_time": 1.5,
        **changes,
    }


def write_eval(path: Path, header: Any, samples: Sequence[Document]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        archive.writestr("header.json", header if isinstance(header, str) else json.dumps(header))
    return path


def write_zip_of(path: Path, members: Mapping[str, bytes], method: int, sizes: Mapping[str, int]) -> Path:
    """A ZIP file with members that are compressed already, by a method that Python may not know."""
    data, directory = b"", b""
    for name, packed in members.items():
        title = name.encode()
        fields = (method, 0, 0, zlib.crc32(packed), len(packed), sizes[name], len(title), 0)
        at = len(data)
        data += struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 63, 0, *fields) + title + packed
        directory += (
            struct.pack("<4sHHHHHHIIIHH", b"PK\x01\x02", 63, 63, 0, *fields)
            + struct.pack("<HHHII", 0, 0, 0, 0, at)
            + title
        )
    end = struct.pack(
        "<4sHHHHIIH", b"PK\x05\x06", 0, 0, len(members), len(members), len(directory), len(data), 0
    )
    path.write_bytes(data + directory + end)
    return path


# verifiers


def write_verifiers(folder: Path, rows: Sequence[Document], **metadata: Any) -> Path:
    folder.mkdir(parents=True)
    known = {
        "env_id": "sums",
        "env_args": {"level": 2},
        "model": "gpt-5",
        "base_url": "http://127.0.0.1:1/v1",
        "num_examples": 2,
        "rollouts_per_example": 2,
        "sampling_args": {"temperature": 0.5},
        "time": 2.5,
        "avg_metrics": {"correct": 0.5},
        "version_info": {"vf_version": "0.1.14"},
    }
    (folder / "metadata.json").write_text(json.dumps({**known, **metadata}))
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def verifiers_row(example: int, reward: Any = 1.0, **changes: Any) -> Document:
    call = json.dumps({"id": "c1", "name": "add", "arguments": '{"x": 2}'})
    return {
        "example_id": example,
        "prompt": [{"role": "user", "content": "2+2?"}],
        "completion": [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "4"},
            {"role": "assistant", "content": "4"},
        ],
        "answer": "4",
        "info": {"level": 1},
        "reward": reward,
        "error": None,
        "timing": {"start_time": 1794858768.5, "generation": {"duration": 0.5}, "total": 0.6},
        "is_truncated": False,
        "stop_condition": "no_tools_called",
        "metrics": {"correct": reward},
        "token_usage": {"input_tokens": 14.0, "output_tokens": 4.0},
        "correct": reward,
        **changes,
    }


# Harbor


def write_job(folder: Path, trials: Mapping[str, Document], **job: Any) -> Path:
    folder.mkdir(parents=True)
    known = {
        "id": "6dc4ad30",
        "started_at": "2026-01-02T03:04:05Z",
        "finished_at": "2026-01-02T03:05:05Z",
        "n_total_trials": len(trials),
        "stats": {},
    }
    (folder / "config.json").write_text("{}")
    (folder / "result.json").write_text(json.dumps({**known, **job}))
    for name, result in trials.items():
        (folder / name / "agent").mkdir(parents=True)
        (folder / name / "result.json").write_text(json.dumps({"trial_name": name, **result}))
    return folder


def harbor_trial(task: str, rewards: Mapping[str, float] | None, **changes: Any) -> Document:
    return {
        "task_name": task,
        "source": "terminal-bench",
        "task_checksum": "c0ffee",
        "agent_info": {
            "name": "terminus",
            "version": "2",
            "model_info": {"name": "gpt-5", "provider": "openai"},
        },
        "agent_result": {"n_input_tokens": 20, "n_cache_tokens": 5, "n_output_tokens": 7},
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "started_at": "2026-01-02T03:04:05Z",
        "finished_at": "2026-01-02T03:04:35Z",
        "agent_execution": {"started_at": "2026-01-02T03:04:10Z", "finished_at": "2026-01-02T03:04:20Z"},
        **changes,
    }


TRAJECTORY = {
    "schema_version": "ATIF-v1.6",
    "agent": {"name": "terminus", "version": "2", "model_name": "gpt-5"},
    "steps": [
        {"step_id": 1, "source": "user", "message": "Make a file."},
        {
            "step_id": 2,
            "source": "agent",
            "message": "Making it.",
            "reasoning_content": "touch does it",
            "tool_calls": [
                {"tool_call_id": "c1", "function_name": "bash", "arguments": {"command": "touch a"}}
            ],
            "observation": {"results": [{"source_call_id": "c1", "content": "done"}]},
            "metrics": {"prompt_tokens": 9, "completion_tokens": 3},
        },
    ],
}


# HUD


def hud_spans(trace_id: str, score: Any, word: str = "pear") -> list[Document]:
    def span(name: str, second: int, **payload: Any) -> Document:
        return {
            "name": f"step.{name}",
            "trace_id": trace_id,
            "start_time": f"2026-01-02T03:04:0{second}Z",
            "end_time": f"2026-01-02T03:04:0{second + 1}Z",
            "attributes": {"hud.schema": "hud.step.v1", "hud.payload": {"source": name, **payload}},
        }

    asked = {"role": "user", "content": {"type": "text", "text": f"How many r in {word}?"}}
    call = {"id": "c1", "name": "count", "arguments": {"word": word}}
    setup = {"phase": "setup", "name": "count", "arguments": {"word": word}, "result": {"prompt": "…"}}
    grade = {"phase": "evaluate", "name": "count", "arguments": {"answer": "1"}, "result": {"score": score}}
    usage = {"prompt_tokens": 7, "completion_tokens": 2}
    return [
        span("task", 1, task_call=setup),
        span("user", 2, messages=[asked]),
        span(
            "agent", 3, content="", tool_calls=[call], model="gpt-5", usage=usage, finish_reason="tool_calls"
        ),
        span("tool", 4, call=call, result={"call_id": "c1", "content": [{"type": "text", "text": "1"}]}),
        span("agent", 5, content="1", model="gpt-5", usage=usage, finish_reason="stop"),
        span("task", 6, task_call=grade),
    ]


def write_spans(folder: Path, traces: Mapping[str, Sequence[Document]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for trace_id, spans in traces.items():
        (folder / f"{trace_id}.jsonl").write_text("".join(json.dumps(span) + "\n" for span in spans))
    return folder


# promptfoo


def promptfoo_result(test: int, prompt: int, success: bool, score: float, **changes: Any) -> Document:
    return {
        "id": f"r{test}-{prompt}",
        "promptIdx": prompt,
        "testIdx": test,
        "provider": {"id": f"openai:gpt-{prompt}", "label": ""},
        "prompt": {"raw": "Capital of France?", "label": "Capital of {{country}}?"},
        "response": {"output": "Paris"},
        "success": success,
        "score": score,
        "namedScores": {"mentions": 1},
        "failureReason": 0 if success else 1,
        "latencyMs": 250,
        "tokenUsage": {"prompt": 10, "completion": 2, "cached": 0},
        "testCase": {"vars": {"country": "France"}, "assert": [{"type": "contains", "value": "Paris"}]},
        **changes,
    }


def write_promptfoo(path: Path, results: Sequence[Document], repeat: int = 1) -> Path:
    document = {
        "evalId": "eval-abc",
        "results": {"version": 3, "timestamp": "2026-01-02T03:04:05.000Z", "results": list(results)},
        "config": {"description": "Capitals"},
        "metadata": {"promptfooVersion": "0.121.20"},
        "runtimeOptions": {"repeat": repeat},
    }
    path.write_text(json.dumps(document))
    return path
