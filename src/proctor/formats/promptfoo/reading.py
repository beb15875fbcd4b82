"""A promptfoo result file as runs: one for each prompt with each provider.

The reward is promptfoo's verdict, 1 for a test that passed and 0 for one that failed, because that is the
number promptfoo reports; its weighted `score` and the named scores are metrics. Knows nothing of run folders.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from proctor.errors import ConfigError, did_you_mean
from proctor.formats.chat_messages import convert_conversation, encode_text
from proctor.formats.foreign_run import (
    ForeignRun,
    LeftOut,
    Row,
    RowParts,
    build_error,
    build_row,
    build_timing,
    is_number,
    keep_scores,
    parse_time,
)
from proctor.formats.sources import (
    SourceFile,
    decode_json,
    get_list,
    get_object,
    get_text,
    read_document,
)
from proctor.trace import Message

TOOL = "promptfoo"
PASS = "pass"
ERROR_REASON = 2
"""promptfoo's number for a test that could not be run, as opposed to one that failed an assertion."""


def recognizes_file(source: SourceFile) -> bool:
    document = source.document
    if document is None or not isinstance(document.get("results"), dict):
        return False
    return "config" in document and isinstance(document["results"].get("results"), list)


def read(path: Path, reward: str | None) -> Iterable[ForeignRun]:
    document = read_document(path)
    columns: dict[int, list[Mapping[str, Any]]] = {}
    for result in get_list(document, "results", "results"):
        if isinstance(result, dict):
            index = result.get("promptIdx")
            columns.setdefault(index if isinstance(index, int) else 0, []).append(result)
    prompts = {get_text(each[0], "prompt", "label") for each in columns.values()}
    for index, results in sorted(columns.items()):
        yield build_run(path, document, index, results, len(prompts) > 1, reward)


def build_run(
    path: Path,
    document: Mapping[str, Any],
    index: int,
    results: Sequence[Mapping[str, Any]],
    is_labelled: bool,
    reward: str | None,
) -> ForeignRun:
    repeat = read_repeat(document)
    provider = results[0].get("provider")
    model = get_text(provider, "id") if isinstance(provider, dict) else str(provider or "")
    label = get_text(results[0], "prompt", "label")

    def rows() -> Iterator[Row | LeftOut]:
        for result in results:
            yield convert_result(result, repeat, reward)

    return ForeignRun(
        tool=TOOL,
        source=path,
        id=f"{get_text(document, 'evalId')}-{index}",
        tool_version=get_text(document, "metadata", "promptfooVersion"),
        env_id=get_text(document, "config", "description") or path.stem,
        model=model,
        label=label if is_labelled else "",
        rows=rows,
        started_at=parse_time(
            get_text(document, "metadata", "evaluationCreatedAt")
            or get_text(document, "results", "timestamp")
        ),
        rollouts_per_example=repeat,
        details={"prompt": label, "provider": provider},
    )


def read_repeat(document: Mapping[str, Any]) -> int:
    for keys in (("runtimeOptions",), ("config", "evaluateOptions")):
        repeat = get_object(document, *keys).get("repeat")
        if isinstance(repeat, int) and repeat > 0:
            return repeat
    return 1


def convert_result(result: Mapping[str, Any], repeat: int, reward_name: str | None) -> Row | LeftOut:
    """With --repeat, promptfoo numbers each repetition as a test of its own, one after the other."""
    test = result.get("testIdx")
    if not isinstance(test, int):
        return LeftOut(get_text(result, "id") or "a result", "it has no testIdx")
    verdict = float(result.get("success") is True)
    metrics = keep_scores({"score": result.get("score"), **get_object(result, "namedScores"), PASS: verdict})
    failed = result.get("failureReason") == ERROR_REASON or bool(get_text(result, "response", "error"))
    chosen = reward_name or PASS
    if chosen not in metrics and not failed:
        raise ConfigError(f"No score {chosen!r} in test {test}{did_you_mean(chosen, metrics)}")
    return build_row(
        RowParts(
            example_id=test // repeat,
            rollout=test % repeat,
            outcome="model_error" if failed else "scored",
            prompt=read_prompt(get_text(result, "prompt", "raw")),
            completion=read_output(get_object(result, "response").get("output")),
            reward=None if failed else metrics[chosen],
            metrics={} if failed else metrics,
            info=read_info(result),
            error=build_error("ProviderError", get_text(result, "error")) if failed else None,
            timing=build_timing(None, read_latency(result)),
            token_usage=read_usage(get_object(result, "tokenUsage")),
            columns={name: result[name] for name in ("gradingResult", "cost", "id") if result.get(name)},
        )
    )


def read_prompt(raw: str) -> list[Message]:
    """The rendered prompt; a chat prompt is JSON text of its messages."""
    if raw.lstrip().startswith("["):
        try:
            messages = decode_json(raw.encode())
        except ValueError:
            messages = None
        if isinstance(messages, list) and all(isinstance(each, dict) and "role" in each for each in messages):
            return convert_conversation(messages, "user")
    return convert_conversation(raw, "user")


def read_output(output: Any) -> list[Message]:
    return [] if output is None else [{"role": "assistant", "content": encode_text(output)}]


def read_info(result: Mapping[str, Any]) -> dict[str, Any]:
    test = get_object(result, "testCase")
    return {name: test[name] for name in ("description", "vars", "assert", "metadata") if test.get(name)}


def read_latency(result: Mapping[str, Any]) -> float | None:
    latency = result.get("latencyMs")
    return latency / 1000 if is_number(latency) else None


def read_usage(usage: Mapping[str, Any]) -> dict[str, int]:
    """Absent where promptfoo counted nothing: it writes zeros for providers that report no tokens."""
    names = {"input_tokens": "prompt", "output_tokens": "completion", "cached_tokens": "cached"}
    counts = {ours: int(usage[theirs]) for ours, theirs in names.items() if is_number(usage.get(theirs))}
    return counts if any(counts.values()) else {}
