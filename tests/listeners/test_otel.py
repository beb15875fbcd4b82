"""Spans as a collector on this machine receives them."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.waiting import SECONDS

pytest.importorskip("opentelemetry.sdk", reason="the extra 'otel' is not installed")

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from proctor import EchoEnvironment, Scripted, Step, evaluate
from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig
from proctor.errors import Failure, ModelError
from proctor.evaluation.execute import Result
from proctor.events import RolloutsFinished, RunStarted
from proctor.listeners import otel
from proctor.listeners.otel import OtelListener
from proctor.rollout import Rollout, Score, Span, Timing
from proctor.run import Run
from proctor.task import Task
from proctor.trace import ModelCall, Reply, Trace, Usage

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@dataclass
class Received:
    """One span, as it arrived."""

    name: str
    id: bytes
    parent: bytes
    trace: bytes
    start: float
    end: float
    status: int
    message: str
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]


@dataclass
class Collector:
    url: str = ""
    status: int = 200
    hangs: threading.Event | None = None
    spans: list[Received] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    paths: set[str] = field(default_factory=set)

    def take(self, path: str, body: bytes) -> None:
        self.paths.add(path)
        request = ExportTraceServiceRequest()
        request.ParseFromString(body)
        for resource in request.resource_spans:
            self.resources.append(attributes_of(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.spans += map(received, scope.spans)

    def named(self, start: str) -> list[Received]:
        return [span for span in self.spans if span.name.startswith(start)]


def received(span: Any) -> Received:
    return Received(
        span.name,
        span.span_id,
        span.parent_span_id,
        span.trace_id,
        span.start_time_unix_nano / 1e9,
        span.end_time_unix_nano / 1e9,
        span.status.code,
        span.status.message,
        attributes_of(span.attributes),
        [(event.name, attributes_of(event.attributes)) for event in span.events],
    )


def attributes_of(pairs: Any) -> dict[str, Any]:
    return {pair.key: value_of(pair.value) for pair in pairs}


def value_of(value: Any) -> Any:
    kind = value.WhichOneof("value")
    return (
        [value_of(each) for each in value.array_value.values]
        if kind == "array_value"
        else getattr(value, kind)
    )


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    kept = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if kept.hangs is not None:
                kept.hangs.wait(SECONDS)
            if kept.status == 200:
                kept.take(self.path, body)
            self.send_response(kept.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *words: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    kept.url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", kept.url)
    for name in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", CAPTURE):
        monkeypatch.delenv(name, raising=False)
    yield kept
    if kept.hangs is not None:
        kept.hangs.set()
    server.shutdown()
    server.server_close()


def watched(*texts: str, model: Scripted | None = None, **settings: Any) -> Result:
    listener = OtelListener(EvalConfig(env_id="echo"), Endpoint(model="scripted", client_type="scripted"))

    async def run() -> Result:
        result = await evaluate(
            EchoEnvironment(*texts), model or Scripted(), listeners=[listener], **settings
        )
        await listener.close()
        return result

    return asyncio.run(run())


def test_a_run_holds_its_rollouts_and_those_hold_their_model_calls(collector: Collector) -> None:
    result = watched("say 1", "say 2", rollouts_per_example=2, temperature=0.5)

    [run] = collector.named("evaluate ")
    rollouts, calls = collector.named("rollout "), collector.named("chat ")
    assert len(rollouts) == len(calls) == 4
    assert {rollout.parent for rollout in rollouts} == {run.id}
    assert {call.parent for call in calls} == {rollout.id for rollout in rollouts}
    assert {span.trace for span in collector.spans} == {run.trace}
    assert run.parent == b""
    assert run.attributes["proctor.run.id"] == result.run.id
    assert run.attributes["proctor.run.status"] == "finished"
    assert collector.paths == {"/v1/traces"}


def test_times_are_those_at_which_things_happened(collector: Collector) -> None:
    before = time.time()
    result = watched("say 1", model=Scripted([Step("say 1", delay_seconds=0.05)]))
    after = time.time()

    [run], [rollout], [call] = (collector.named(name) for name in ("evaluate ", "rollout ", "chat "))
    assert before <= run.start <= rollout.start <= call.start
    assert call.end <= rollout.end <= run.end <= after
    assert call.end - call.start >= 0.04
    [told] = result
    assert rollout.start == pytest.approx(told.timing.setup.start, abs=1e-3)
    assert rollout.end == pytest.approx(told.timing.end, abs=1e-3)


def test_attributes_have_the_names_of_the_conventions(collector: Collector) -> None:
    watched("say 1", temperature=0.5, max_tokens=7, sampling_args={"stop": ["x"]})

    [call], [rollout] = collector.named("chat "), collector.named("rollout ")
    assert call.attributes["gen_ai.operation.name"] == "chat"
    assert call.attributes["gen_ai.request.model"] == "scripted"
    assert call.attributes["gen_ai.request.temperature"] == 0.5
    assert call.attributes["gen_ai.request.max_tokens"] == 7
    assert call.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert call.attributes["gen_ai.usage.input_tokens"] >= 0
    assert rollout.attributes["proctor.outcome"] == "scored"
    assert rollout.attributes["proctor.reward"] == 1.0
    assert (
        "gen_ai.evaluation.result",
        {"gen_ai.evaluation.name": "reward", "gen_ai.evaluation.score.value": 1.0},
    ) in (rollout.events)


def test_nothing_that_was_said_leaves_the_machine_unasked(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "the word is swordfish"
    watched(secret)
    watched(secret, model=Scripted([ModelError(f"cannot read {secret!r}")]))
    assert len(collector.named("chat ")) == 2
    assert "swordfish" not in repr(collector.spans)

    monkeypatch.setenv(CAPTURE, "true")
    watched(secret)
    call = collector.named("chat ")[-1]
    said = json.loads(call.attributes["gen_ai.output.messages"])
    assert said == [
        {"role": "assistant", "parts": [{"type": "text", "content": secret}], "finish_reason": "stop"}
    ]
    assert secret in call.attributes["gen_ai.input.messages"]


def test_failures_are_marked_where_they_happened(collector: Collector) -> None:
    watched("say 1", model=Scripted([ModelError("503")]))

    [run], [rollout], [call] = (collector.named(name) for name in ("evaluate ", "rollout ", "chat "))
    assert (run.status, rollout.status, call.status) == (0, 2, 2)
    assert rollout.attributes["proctor.outcome"] == "model_error"
    assert rollout.attributes["error.type"] == call.attributes["error.type"] == "ModelError"
    assert "proctor.reward" not in rollout.attributes


def made(number: int = 0, **settings: Any) -> Rollout:
    """A rollout that nobody played, with one call of everything a provider may tell."""
    reply = Reply(
        {"role": "assistant", "content": "4"},
        usage=Usage(11, 7, 5, 3),
        model="served",
        id="reply-1",
        served_by="http://127.0.0.1:1/v1",
    )
    call = ModelCall(
        "agent", "m", [{"role": "user", "content": "2+2"}], {"top_p": 0.9}, 100.0, (), 2.0, reply
    )
    judge = ModelCall("judge", "j", [], {}, 103.0, (), 1.0, None, Failure("OverloadedError", "503"))
    told: dict[str, Any] = {
        "task": Task(id="t1"),
        "number": number,
        "outcome": "scored",
        "trace": Trace(calls=[call, judge]),
        "timing": Timing(Span(99.0, 100.0), Span(100.0, 102.0), Span(102.0, 104.0), 104.5),
        "usage": Usage(11, 7, 5, 3),
        "score": Score(1.0, {"short": 0.5}),
    }
    return Rollout(**{**told, **settings})


def test_tokens_and_the_address_belong_to_the_call_they_were_paid_for(collector: Collector) -> None:
    endpoint = Endpoint(model="m", client_type="anthropic_messages", url="http://127.0.0.1:9/v1")

    async def run() -> None:
        listener = OtelListener(EvalConfig(env_id="echo"), endpoint)
        listener(RunStarted(Run(id="r", env_id="echo", model="m", started_at=98.0), planned=1))
        listener(RolloutsFinished((made(),)))
        await listener.close()

    asyncio.run(run())

    [call], [judge] = collector.named("chat m"), collector.named("chat j")
    assert call.attributes["gen_ai.provider.name"] == "anthropic"
    assert (call.attributes["server.address"], call.attributes["server.port"]) == ("127.0.0.1", 9)
    assert call.attributes["gen_ai.usage.input_tokens"] == 11
    assert call.attributes["gen_ai.usage.output_tokens"] == 7
    assert call.attributes["gen_ai.usage.cache_read.input_tokens"] == 5
    assert call.attributes["gen_ai.response.model"] == "served"
    assert (call.start, call.end) == (100.0, 102.0)
    assert judge.status == 2
    assert "server.address" not in judge.attributes
    [unfinished] = collector.named("evaluate ")
    assert unfinished.status == 2, "the run never said that it ended"


def test_users_name_the_service_as_they_are_used_to(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    watched("say 1")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "nightly")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=search")
    watched("say 1")

    assert collector.resources[0]["service.name"] == "proctor"
    assert collector.resources[-1]["service.name"] == "nightly"
    assert collector.resources[-1]["team"] == "search"


def test_many_rollouts_lose_no_span(collector: Collector) -> None:
    async def run() -> None:
        listener = OtelListener(EvalConfig(env_id="echo"), Endpoint(model="m"))
        for number in range(1_000):
            listener(RolloutsFinished((made(number),)))
        await listener.close()

    asyncio.run(run())

    assert len(collector.spans) == 3_000


def test_a_collector_that_is_not_there_costs_one_warning_and_no_rollout(
    collector: Collector, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.status = 400

    result = watched("say 1")

    assert result.summary.reward.mean == 1.0
    first, last = caplog.messages
    assert first.startswith("OpenTelemetry spans do not reach their collector; the run continues.")
    assert last == "3 spans did not reach the OpenTelemetry collector."


def test_a_collector_that_hangs_is_left_behind(
    collector: Collector, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector.hangs = threading.Event()
    monkeypatch.setattr(otel, "FLUSH_SECONDS", 0.2)
    before = time.monotonic()

    watched("say 1")

    assert time.monotonic() - before < SECONDS / 2
    assert "took more than 0.2 s" in caplog.text
