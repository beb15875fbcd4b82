"""Endpoints as a program finds them: keys, paths, failures, streams; and what is in the trace afterwards."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from proctor import Scripted, Step
from proctor.contracts import HttpEndpoint, Request
from proctor.engine.seat import RecordedSeat, RunContext
from proctor.errors import ModelError, ModelTimeoutError, OverloadedError
from proctor.gateway import live, server
from proctor.gateway.gateway import RolloutGateway
from proctor.models.scripted import Script
from proctor.support.deadlines import Deadlines
from proctor.trace import Message, Piece, Reply, Trace, Usage
from tests.waiting import SECONDS

HI: list[Message] = [{"role": "user", "content": "hi"}]
BODIES: dict[str, Any] = {
    "/v1/chat/completions": {"messages": HI},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": HI, "max_tokens": 9},
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}

Answered = tuple[int, Any]


class Program:
    """A program at an endpoint, as far as its requests."""

    def __init__(self, endpoint: HttpEndpoint, session: aiohttp.ClientSession) -> None:
        self.endpoint = endpoint
        self.session = session
        self.headers: dict[str, str] = {"authorization": f"Bearer {endpoint.key}"}

    async def post(self, path: str, body: Any) -> Answered:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.session.post(self.endpoint.url + path, data=content, headers=self.headers) as answer:
            self.answer_headers = answer.headers
            return answer.status, json.loads(await answer.read())

    async def stream(self, path: str, body: Any) -> tuple[int, str]:
        sent = self.session.post(
            self.endpoint.url + path, json={**body, "stream": True}, headers=self.headers
        )
        async with sent as answer:
            return answer.status, (await answer.read()).decode()

    async def chat(self, *messages: Message, **more: Any) -> Answered:
        return await self.post("/v1/chat/completions", {"messages": messages, **more})


def seat_at(table: RunContext, number: int) -> RecordedSeat:
    return RecordedSeat(table, ("task", number), {}, Deadlines().within(None))


def at_a_door(
    script: Script | Scripted,
    visit: Callable[[Program], Awaitable[Any]],
    max_requests: int | None = None,
    prompt: list[Message] | None = None,
) -> tuple[Any, Trace, Scripted]:
    """What a visit comes to, the trace it leaves, and the model that was asked."""
    model = script if isinstance(script, Scripted) else Scripted(script, name="evaluated")

    async def once() -> tuple[Any, Trace]:
        gateway = RolloutGateway(model.name)
        seat = seat_at(RunContext(model, sampling={"temperature": 0.5}, first_repeat_seconds=0.0), 0)
        seat.trace.prompt = prompt or []
        try:
            async with gateway.open(seat, max_requests) as endpoint, aiohttp.ClientSession() as session:
                return await visit(Program(endpoint, session)), seat.trace
        finally:
            await gateway.close()

    result, trace = asyncio.run(once())
    return result, trace, model


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("version", ["/v1", ""])
def test_whatever_model_is_asked_for_the_evaluated_one_answers_and_is_named(path: str, version: str) -> None:
    async def visit(program: Program) -> Answered:
        return await program.post(path.replace("/v1", version), {**BODIES[path], "model": "gpt-99"})

    (status, body), trace, model = at_a_door(["hello"], visit)

    assert (status, body["model"]) == (200, "evaluated")
    assert "hello" in json.dumps(body)
    assert [call.reply.text for call in trace.calls if call.reply] == ["hello"]
    assert model.requests[0].sampling["temperature"] == 0.5  # the user's own, over the program's


def test_the_users_sampling_wins_and_the_programs_fills_the_rest() -> None:
    async def visit(program: Program) -> Answered:
        return await program.chat(*HI, temperature=1, max_tokens=3, logit_bias={})

    _, _, model = at_a_door(["hello"], visit)

    assert model.requests[0].sampling == {"temperature": 0.5, "max_tokens": 3}


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("headers", [{}, {"x-api-key": "sk-guess"}, {"authorization": "Bearer sk-guess"}])
def test_nobody_gets_in_without_the_key(path: str, headers: dict[str, str]) -> None:
    async def visit(program: Program) -> Answered:
        program.headers = headers
        return await program.post(path, BODIES[path])

    (status, body), trace, model = at_a_door(["hello"], visit)

    assert (status, body["error"]["type"]) == (401, "authentication_error")
    assert (trace.calls, model.requests) == ([], [])


def test_either_header_carries_the_key() -> None:
    async def visit(program: Program) -> Answered:
        program.headers = {"x-api-key": program.endpoint.key, "authorization": "Bearer of something else"}
        return await program.post("/v1/messages", BODIES["/v1/messages"])

    (status, _), _, _ = at_a_door(["hello"], visit)

    assert status == 200


def test_a_key_is_good_for_its_own_rollout_until_that_has_ended() -> None:
    async def once() -> list[int]:
        gateway = RolloutGateway("evaluated")
        seats = [seat_at(RunContext(Scripted([f"{n}"])), n) for n in range(2)]
        async with aiohttp.ClientSession() as session, gateway.open(seats[0]) as first:
            async with gateway.open(seats[1]) as second:
                assert first.key != second.key
                assert first.url == second.url
                _, body = await Program(second, session).chat(*HI)
                assert body["choices"][0]["message"]["content"] == "1"
            late, _ = await Program(second, session).chat(*HI)
            still, _ = await Program(first, session).chat(*HI)
        await gateway.close()
        assert not Path(first.socket).parent.exists()
        return [late, still, len(seats[0].trace.calls), len(seats[1].trace.calls)]

    assert asyncio.run(once()) == [401, 200, 1, 1]


def test_what_is_being_asked_when_a_door_closes_ends_and_is_told_so() -> None:
    async def once() -> tuple[Answered, Trace]:
        gateway = RolloutGateway("evaluated")
        seat = seat_at(RunContext(Scripted([Step(text="late", delay_seconds=60)])), 0)
        async with aiohttp.ClientSession() as session:
            async with gateway.open(seat) as endpoint:
                asking = asyncio.create_task(Program(endpoint, session).chat(*HI))
                while not seat.trace.calls:
                    await asyncio.sleep(0.01)
            answered = await asyncio.wait_for(asking, SECONDS)
        await gateway.close()
        return answered, seat.trace

    (status, body), trace = asyncio.run(once())

    assert (status, body["error"]["code"]) == (401, "invalid_api_key")
    assert trace.calls[0].failure is not None
    assert trace.calls[0].failure.kind == "Cancelled"
    assert trace.prompt == HI


def test_the_socket_leads_to_the_same_place_and_is_nobody_elses() -> None:
    async def visit(program: Program) -> tuple[int, int]:
        folder = Path(program.endpoint.socket).parent
        connector = aiohttp.UnixConnector(program.endpoint.socket)
        async with aiohttp.ClientSession(connector=connector) as session:
            status, _ = await Program(program.endpoint, session).chat(*HI)
        return status, stat.S_IMODE(folder.stat().st_mode)

    assert at_a_door(["hello"], visit)[0] == (200, 0o700)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        ("context_too_long", 400, "context_length_exceeded"),
        ("refused", 400, "invalid_request"),
        ("auth", 403, "provider_key"),
        ("overloaded", 503, "overloaded"),
        ("unreachable", 502, "provider_unreachable"),
        ("timeout", 504, "timeout"),
        ("malformed", 502, "provider_unreadable"),
    ],
)
def test_a_model_that_fails_is_told_as_programs_expect_it(error: str, status: int, code: str) -> None:
    async def visit(program: Program) -> list[tuple[int, Any]]:
        plain = await program.post("/v1/responses", BODIES["/v1/responses"])
        streamed = await program.stream("/v1/chat/completions", BODIES["/v1/chat/completions"])
        failure = program.endpoint.traffic.failure
        return [plain, (streamed[0], json.loads(streamed[1])), (0, type(failure))]

    (plain, streamed, (_, failure)), trace, _ = at_a_door(
        [Step(error=error, text="the key sk-1 is bad")], visit
    )

    assert (plain[0], plain[1]["error"]["code"]) == (status, code)
    assert (streamed[0], streamed[1]["error"]["code"]) == (status, code)
    assert issubclass(failure, ModelError)
    assert ("sk-1" in plain[1]["error"]["message"]) is (error != "auth")
    sends = 5 if error in ("overloaded", "unreachable") else 1
    assert [call.failure is not None for call in trace.calls] == [True] * 2 * sends


def test_a_rate_limit_says_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("proctor.engine.limits.PATIENCE", 0)

    async def visit(program: Program) -> tuple[int, str]:
        status, _ = await program.chat(*HI)
        return status, program.answer_headers["retry-after"]

    limited = Step(error="rate_limit", retry_after_seconds=6.5)
    assert at_a_door([limited], visit)[0] == (429, "7")


class Writing(Scripted):
    """A model that writes word by word, and waits before the last one."""

    def __init__(self) -> None:
        super().__init__(name="evaluated")
        self.may_end = asyncio.Event()

    async def complete(self, request: Request) -> Reply:
        assert request.pieces is not None
        request.pieces(Piece("thought", "Hm."))
        request.pieces(Piece("text", "one "))
        await self.may_end.wait()
        request.pieces(Piece("text", "two"))
        message = {"role": "assistant", "reasoning_content": "Hm.", "content": "one two", "tool_calls": CALLS}
        return Reply(message, "tool_calls", Usage(7, 3))


CALLS = [{"id": "call_0", "name": "look", "arguments": "{}"}]


@pytest.mark.parametrize("path", BODIES)
def test_a_stream_is_sent_while_the_model_writes(path: str) -> None:
    model = Writing()

    async def visit(program: Program) -> tuple[bytes, bytes]:
        sent = program.session.post(
            program.endpoint.url + path, json={**BODIES[path], "stream": True}, headers=program.headers
        )
        async with sent as answer:
            first = b""
            while b"one " not in first:
                first += await answer.content.readany()
            model.may_end.set()
            return first, await answer.read()

    (first, rest), trace, _ = at_a_door(model, visit)

    assert b"two" not in first
    assert b"two" in rest
    assert b'"look"' in rest
    assert (b"one " in rest) is (path == "/v1/responses"), "only there does the end repeat the whole"
    assert [call.reply is not None for call in trace.calls] == [True]


def test_a_request_whose_answer_has_begun_is_not_sent_again() -> None:
    class Breaking(Scripted):
        async def complete(self, request: Request) -> Reply:
            self.requests.append(request)
            assert request.pieces is not None
            request.pieces(Piece("text", "one "))
            raise OverloadedError("503")

    model = Breaking(name="evaluated")

    async def visit(program: Program) -> tuple[int, str]:
        return await program.stream("/v1/chat/completions", BODIES["/v1/chat/completions"])

    (status, text), _, _ = at_a_door(model, visit)

    assert status == 200
    assert text.count("one ") == 1
    assert '"code":"overloaded"' in text
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("path", "ends_with"),
    [
        ("/v1/chat/completions", "data: [DONE]"),
        ("/v1/responses", '"type":"response.completed"'),
        ("/v1/messages", 'data: {"type":"message_stop"}'),
    ],
)
def test_a_stream_ends_as_its_wire_says(path: str, ends_with: str) -> None:
    async def visit(program: Program) -> tuple[int, str]:
        return await program.stream(path, BODIES[path])

    (status, text), _, _ = at_a_door(["hello"], visit)

    assert status == 200
    assert "hello" in text
    assert ends_with in text.strip().split("\n\n")[-1]


@pytest.mark.parametrize(
    ("path", "alive", "broken"),
    [
        ("/v1/chat/completions", ": still at it", '"code":"overloaded"'),
        ("/v1/responses", ": still at it", "event: response.failed"),
        ("/v1/messages", "event: ping", "event: error"),
    ],
)
def test_a_slow_stream_shows_that_it_lives_and_says_at_its_end_if_it_failed(
    monkeypatch: pytest.MonkeyPatch, path: str, alive: str, broken: str
) -> None:
    monkeypatch.setattr(live, "QUIET_SECONDS", 0.02)

    async def visit(program: Program) -> tuple[int, str]:
        return await program.stream(path, BODIES[path])

    slow = [Step(delay_seconds=0.5, error="overloaded")]
    (status, text), _, _ = at_a_door(slow, visit)

    assert status == 200
    assert text.startswith(alive)
    assert broken in text


@pytest.mark.parametrize("path", BODIES)
def test_a_malformed_request_names_its_field_and_asks_nobody(path: str) -> None:
    async def visit(program: Program) -> Answered:
        return await program.post(path, {**BODIES[path], "temperature": "hot"})

    (status, body), trace, _ = at_a_door(["hello"], visit)

    assert status == 400
    assert "temperature" in body["error"]["message"]
    assert trace.calls == []


def test_a_body_beyond_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LARGEST_BODY", 1000)

    async def visit(program: Program) -> Answered:
        return await program.chat({"role": "user", "content": "x" * 2000})

    (status, body), _, _ = at_a_door(["hello"], visit)

    assert (status, body["error"]["code"]) == (413, "request_too_large")


def test_models_are_listed_and_everything_else_is_not_found() -> None:
    async def visit(program: Program) -> list[Any]:
        found = []
        for path in ("/v1/models", "/models/a/b", "/v1/embeddings"):
            async with program.session.get(program.endpoint.url + path, headers=program.headers) as answer:
                found.append((answer.status, await answer.json()))
        return found

    (listed, shown, missing), _, _ = at_a_door([], visit)

    assert [model["id"] for model in listed[1]["data"]] == ["evaluated"]
    assert shown[1]["id"] == "evaluated"
    assert missing[0] == 404
    assert "/v1/chat/completions" in missing[1]["error"]["message"]


def test_tokens_are_estimated_without_asking_anybody() -> None:
    async def visit(program: Program) -> Answered:
        return await program.post("/v1/messages/count_tokens", {"messages": HI})

    (status, body), trace, _ = at_a_door([], visit)

    assert (status, body, trace.calls) == (200, {"input_tokens": 1}, [])


def test_after_the_last_request_the_door_says_no_and_the_rollout_is_truncated() -> None:
    async def visit(program: Program) -> tuple[list[int], bool]:
        codes = [(await program.chat(*HI))[0] for _ in range(3)]
        return codes, program.endpoint.traffic.refused

    (codes, refused), trace, _ = at_a_door(["hello"], visit, max_requests=2)

    assert (codes, refused) == ([200, 200, 400], True)
    assert (trace.stop_condition, trace.truncated, len(trace.calls)) == ("max_steps", True, 2)


def test_requests_that_the_model_could_not_answer_are_not_counted() -> None:
    async def visit(program: Program) -> list[int]:
        return [(await program.chat(*HI))[0] for _ in range(3)]

    script: Script = [ModelTimeoutError("busy"), "hello", "again"]
    assert at_a_door(script, visit, max_requests=1)[0] == [504, 200, 400]


# The conversation


def test_the_trace_shows_the_conversation_that_goes_on_and_not_what_is_asked_beside_it() -> None:
    async def visit(program: Program) -> None:
        title = {"role": "system", "content": "Write a title."}
        await program.chat(title, {"role": "user", "content": "Count the files."})
        say = {"role": "system", "content": "You are an agent."}
        asked: list[Message] = [say, {"role": "user", "content": "Count the files."}]
        _, first = await program.chat(*asked, tools=[TOOL])
        await program.chat(title, {"role": "user", "content": "And now a title for the middle."})
        asked += [first["choices"][0]["message"], {"role": "tool", "tool_call_id": "call_0", "content": "3"}]
        again = {"role": "system", "content": "You are an agent. It is later now."}
        await program.chat(again, *asked[1:], tools=[TOOL])
        await program.chat({"role": "user", "content": "Count the files. Was that well done?"})

    looks = Step(tool_calls=[{"name": "look"}])
    task: list[Message] = [{"role": "user", "content": "Count the files."}]
    _, trace, _ = at_a_door(["Files", looks, "Middle", "There are 3.", "Yes."], visit, prompt=task)

    assert [message["role"] for message in trace.prompt] == ["system", "user"]
    assert [(message["role"], message["content"]) for message in trace.completion] == [
        ("assistant", None),
        ("tool", "3"),
        ("assistant", "There are 3."),
    ]
    assert len(trace.calls) == 5


def test_a_later_turn_is_added_to_what_was_said_before() -> None:
    model = Scripted(["one", "two"])

    async def once() -> Trace:
        gateway = RolloutGateway("evaluated")
        seat = seat_at(RunContext(model), 0)
        seat.trace.prompt = [{"role": "user", "content": "first"}]
        async with aiohttp.ClientSession() as session:
            async with gateway.open(seat) as endpoint:
                await Program(endpoint, session).chat({"role": "user", "content": "first"})
            seat.trace.completion.append({"role": "user", "content": "second"})
            async with gateway.open(seat) as endpoint:
                await Program(endpoint, session).chat({"role": "user", "content": "second"})
        await gateway.close()
        return seat.trace

    trace = asyncio.run(once())

    said = [message["content"] for message in (*trace.prompt, *trace.completion)]
    assert said == ["first", "one", "second", "two"]


def test_thoughts_that_a_wire_cannot_carry_are_put_back_when_the_program_goes_on() -> None:
    async def visit(program: Program) -> None:
        body: dict[str, Any] = {"messages": list(HI), "max_tokens": 9}
        _, first = await program.post("/v1/messages", body)
        result = {"type": "tool_result", "tool_use_id": "call_0", "content": "3"}
        body["messages"] += [
            {"role": "assistant", "content": first["content"]},
            {"role": "user", "content": [result]},
        ]
        await program.post("/v1/messages", body)

    thoughtful = Step(reasoning="Look first.", tool_calls=[{"name": "look"}])
    _, _, model = at_a_door([thoughtful, "done"], visit)

    assert model.requests[1].messages[1]["reasoning_content"] == "Look first."


def test_a_response_goes_on_from_an_earlier_one_by_its_id() -> None:
    async def visit(program: Program) -> list[Answered]:
        _, first = await program.post("/v1/responses", {"input": "hi", "instructions": "Be brief."})
        more = {"input": "more", "instructions": "Be long.", "previous_response_id": first["id"]}
        unknown = {"input": "more", "previous_response_id": "resp_0"}
        return [await program.post("/v1/responses", body) for body in (more, unknown)]

    (more, unknown), _, model = at_a_door(["one", "two"], visit)

    assert [message["content"] for message in model.requests[1].messages] == ["Be long.", "hi", "one", "more"]
    assert (more[0], unknown[0]) == (200, 400)
    assert "previous_response_id" in unknown[1]["error"]["message"]


def test_a_reply_that_was_cut_off_at_the_end_makes_the_rollout_truncated() -> None:
    async def visit(program: Program) -> None:
        await program.chat(*HI)

    _, trace, _ = at_a_door([Step(text="Once upon", finish_reason="length")], visit)

    assert trace.truncated
