"""Spans for OpenTelemetry: one for the run, one for each rollout in it, one for each model call in that.

Names and attributes follow the semantic conventions for generative AI; our own begin with `proctor.`. Spans
carry the times at which things really happened. They are sent in the background to the address that the
standard `OTEL_*` variables name, over OTLP/HTTP. What was said is sent only on request, and so is the text of
an error, which may quote it. Knows nothing of files or terminals.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit

import msgspec

from proctor.config.endpoints import Endpoint
from proctor.config.schema import EvalConfig
from proctor.errors import ConfigError, Failure
from proctor.events import Event, RolloutsFinished, RunEnded, RunStarted
from proctor.rollout import Rollout
from proctor.run import Run
from proctor.support.logs import log
from proctor.trace import Message, ModelCall, text_of

try:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
except ImportError as error:
    raise ConfigError(
        f"Listener 'otel' needs OpenTelemetry, which is not installed ({error}); "
        f"install it with pip install 'proctor[otel]'."
    ) from error

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
CAPTURING = frozenset({"true", "1", "span_only", "span_and_event"})
QUEUED_SPANS = 65_536
"""Kept while the collector is slow, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise; more are dropped."""
FLUSH_SECONDS = 10.0
NOISY = ("opentelemetry.exporter", "opentelemetry.sdk.trace.export", "opentelemetry.sdk._shared_internal")

PROVIDERS = {
    "openai_chat_completions": "openai",
    "openai_chat_completions_token": "openai",
    "openai_completions": "openai",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "gcp.gemini",
}
"""By client type: whose protocol is spoken, which is what the conventions ask for."""
OPERATIONS = {"openai_completions": "text_completion", "gemini": "generate_content"}
SAMPLING = {
    "temperature": "gen_ai.request.temperature",
    "max_tokens": "gen_ai.request.max_tokens",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "seed": "gen_ai.request.seed",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}

Attributes = dict[str, Any]


class OtelListener:
    """Turns a run's events into spans."""

    def __init__(self, config: EvalConfig, endpoint: Endpoint) -> None:
        self.config = config
        self.endpoint = endpoint
        self.with_content = os.environ.get(CAPTURE, "").lower() in CAPTURING
        self._exporter = QuietSpanExporter(OTLPSpanExporter())
        self._provider = TracerProvider(
            resource=Resource.create(service_attributes()), shutdown_on_exit=False
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(
                self._exporter,
                max_queue_size=None if "OTEL_BSP_MAX_QUEUE_SIZE" in os.environ else QUEUED_SPANS,
            )
        )
        self._tracer = self._provider.get_tracer("proctor", version("proctor"))
        self._run: Span | None = None

    def __call__(self, event: Event) -> None:
        if isinstance(event, RolloutsFinished):
            for rollout in event.rollouts:
                self._rollout(rollout)
        elif isinstance(event, RunStarted):
            self._run = self._tracer.start_span(
                f"evaluate {event.run.env_id}",
                start_time=to_nanoseconds(event.run.started_at),
                attributes=run_attributes(event.run, self.config, event.planned),
            )
        elif isinstance(event, RunEnded) and self._run is not None:
            self._run.set_attribute("proctor.run.status", event.run.status)
            if event.run.status == "failed":
                self._run.set_status(Status(StatusCode.ERROR, event.run.note if self.with_content else None))
            self._run.end(to_nanoseconds(event.run.ended_at) if event.run.ended_at else None)
            self._run = None

    async def close(self) -> None:
        """Send what is left, but do not wait for a collector that takes too long."""
        if self._run is not None:
            self._run.set_status(Status(StatusCode.ERROR, "the run did not finish"))
            self._run.end()
            self._run = None
        loop = asyncio.get_running_loop()
        flushed = asyncio.Event()

        def flush() -> None:
            self._provider.shutdown()
            with suppress(RuntimeError):  # too late: the loop is closed
                loop.call_soon_threadsafe(flushed.set)

        threading.Thread(target=flush, name="otel-flush", daemon=True).start()
        try:
            async with asyncio.timeout(FLUSH_SECONDS):
                await flushed.wait()
        except TimeoutError:
            log.warning(
                "OpenTelemetry took more than %g s to send the last spans; some are lost.", FLUSH_SECONDS
            )
            return
        self._exporter.report_failures()

    def _rollout(self, rollout: Rollout) -> None:
        context = set_span_in_context(self._run) if self._run is not None else None
        timing = rollout.timing
        span = self._tracer.start_span(
            f"rollout {self.config.env_id}",
            context,
            start_time=to_nanoseconds(timing.setup.start),
            attributes=rollout_attributes(rollout),
        )
        inside = set_span_in_context(span)
        for call in rollout.trace.calls:
            self._call(call, inside)
        for name, value in iterate_scores(rollout):
            span.add_event(
                "gen_ai.evaluation.result",
                {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value},
                to_nanoseconds(timing.scoring.end),
            )
        for attempt in rollout.earlier:
            span.add_event(
                "proctor.retried",
                {"proctor.outcome": attempt.outcome, "error.type": attempt.failure.kind},
                to_nanoseconds(attempt.started_at + attempt.seconds),
            )
        if not rollout.is_settled:
            self._mark(span, rollout.failure)
        span.end(to_nanoseconds(timing.end))

    def _call(self, call: ModelCall, inside: Any) -> None:
        operation = OPERATIONS.get(self.endpoint.client_type, "chat") if call.role == "agent" else "chat"
        span = self._tracer.start_span(
            f"{operation} {call.model}",
            inside,
            kind=SpanKind.CLIENT,
            start_time=to_nanoseconds(call.started_at),
            attributes={
                "gen_ai.operation.name": operation,
                **call_attributes(call),
                **(endpoint_attributes(self.endpoint) if call.role == "agent" else {}),
                **(content_attributes(call) if self.with_content else {}),
            },
        )
        if call.failure is not None:
            self._mark(span, call.failure)
        span.end(to_nanoseconds(call.started_at + call.seconds))

    def _mark(self, span: Span, failure: Failure | None) -> None:
        kind = failure.kind if failure is not None else "unknown"
        span.set_attribute("error.type", kind)
        description = failure.message if failure is not None and self.with_content else kind
        span.set_status(Status(StatusCode.ERROR, description))


class QuietSpanExporter(SpanExporter):
    """An exporter that logs its failures once, not once per batch."""

    def __init__(self, exporter: OTLPSpanExporter) -> None:
        self.exporter = exporter
        self.lost = 0
        for name in NOISY:
            logging.getLogger(name).setLevel(logging.CRITICAL)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self.exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            if not self.lost:
                log.warning(
                    "OpenTelemetry spans do not reach their collector; the run continues. "
                    "Check OTEL_EXPORTER_OTLP_ENDPOINT."
                )
            self.lost += len(spans)
        return result

    def report_failures(self) -> None:
        if self.lost:
            log.warning("%d spans did not reach the OpenTelemetry collector.", self.lost)

    def shutdown(self) -> None:
        self.exporter.shutdown()  # type: ignore[no-untyped-call]

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self.exporter.force_flush(timeout_millis)


def service_attributes() -> Attributes:
    """The default service name of the spans."""
    named = "OTEL_SERVICE_NAME" in os.environ or "service.name=" in os.environ.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return {"service.version": version("proctor"), **({} if named else {"service.name": "proctor"})}


def run_attributes(run: Run, config: EvalConfig, planned: int | None) -> Attributes:
    return drop_none(
        {
            "proctor.run.id": run.id,
            "proctor.run.label": run.label or None,
            "proctor.environment": run.env_id,
            "gen_ai.request.model": run.model,
            "proctor.rollouts.planned": planned,
            "proctor.rollouts_per_task": config.rollouts_per_example,
        }
    )


def rollout_attributes(rollout: Rollout) -> Attributes:
    usage, timing, score = rollout.usage, rollout.timing, rollout.score
    return drop_none(
        {
            "proctor.task.id": str(rollout.task.id),
            "proctor.task.hash": rollout.task.hash,
            "proctor.rollout": rollout.number,
            "proctor.outcome": rollout.outcome,
            "proctor.reward": None if score is None else score.reward,
            "proctor.stop_condition": rollout.trace.stop_condition,
            "proctor.attempts": 1 + len(rollout.earlier),
            "proctor.setup.seconds": timing.setup.duration,
            "proctor.generation.seconds": timing.generation.duration,
            "proctor.scoring.seconds": timing.scoring.duration,
            "gen_ai.usage.input_tokens": usage.input_tokens,
            "gen_ai.usage.output_tokens": usage.output_tokens,
        }
    )


def iterate_scores(rollout: Rollout) -> Iterator[tuple[str, float]]:
    if rollout.score is not None:
        yield "reward", rollout.score.reward
        yield from rollout.score.metrics.items()


def call_attributes(call: ModelCall) -> Attributes:
    attributes: Attributes = {"gen_ai.request.model": call.model, "proctor.role": call.role}
    for name, attribute in SAMPLING.items():
        value = call.sampling.get(name)
        if isinstance(value, (int, float)):
            attributes[attribute] = value
    reply = call.reply
    if reply is not None:
        usage = reply.usage
        attributes |= drop_none(
            {
                "gen_ai.response.model": reply.model,
                "gen_ai.response.id": reply.id,
                "gen_ai.response.finish_reasons": [reply.finish_reason],
                "gen_ai.usage.input_tokens": usage.input_tokens,
                "gen_ai.usage.output_tokens": usage.output_tokens,
                "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
                "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
                "proctor.served_by": reply.served_by,
            }
        )
    return attributes


def endpoint_attributes(endpoint: Endpoint) -> Attributes:
    parts = urlsplit(endpoint.url)
    return drop_none(
        {
            "gen_ai.provider.name": PROVIDERS.get(endpoint.client_type, "proctor"),
            "server.address": parts.hostname if parts.scheme else None,
            "server.port": parts.port if parts.scheme else None,
        }
    )


def content_attributes(call: ModelCall) -> Attributes:
    """What was said, as JSON text in the shape of the conventions."""
    attributes = {"gen_ai.input.messages": encode_json(map(to_convention, call.messages))}
    if call.reply is not None:
        message = {**to_convention(call.reply.message), "finish_reason": call.reply.finish_reason}
        attributes["gen_ai.output.messages"] = encode_json([message])
    return attributes


def to_convention(message: Message) -> dict[str, Any]:
    """A message as a role and its parts."""
    role = str(message.get("role", ""))
    if role == "tool":
        answer = {
            "type": "tool_call_response",
            "id": message.get("tool_call_id"),
            "response": text_of(message),
        }
        return {"role": role, "parts": [answer]}
    parts: list[dict[str, Any]] = []
    if message.get("reasoning_content"):
        parts.append({"type": "reasoning", "content": message["reasoning_content"]})
    if text := text_of(message):
        parts.append({"type": "text", "content": text})
    parts += [
        {"type": "tool_call", **{key: call.get(key) for key in ("id", "name", "arguments")}}
        for call in message.get("tool_calls") or ()
    ]
    return {"role": role, "parts": parts}


def encode_json(values: Iterable[Any]) -> str:
    return msgspec.json.encode(list(values), enc_hook=str).decode()


def drop_none(attributes: Mapping[str, Any]) -> Attributes:
    return {name: value for name, value in attributes.items() if value is not None}


def to_nanoseconds(seconds: float) -> int:
    return int(seconds * 1e9)
