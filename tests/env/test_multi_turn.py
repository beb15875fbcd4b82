"""The turn loop: who speaks when, what ends it, which hooks are called, and what is cleaned up."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from proctor import (
    EnvGroup,
    MultiTurnEnv,
    Rubric,
    Scripted,
    SingleTurnEnv,
    State,
    Step,
    cleanup,
    stop,
    teardown,
)
from proctor.errors import ConfigError
from proctor.evaluation.evaluate import evaluate
from proctor.rollout import Rollout
from proctor.support.threads import recommended_max_workers
from proctor.trace import Message
from tests.env.playing import reward

Play = Callable[..., list[Rollout]]

ROWS = [{"question": "Begin."}]


def count(state: State) -> float:
    return float(state["turn"])


def texts(messages: Sequence[Message]) -> list[str]:
    return [f"{message['role']}: {message['content']}" for message in messages]


class Echoing(MultiTurnEnv):
    """Repeats what the model said."""

    async def env_response(self, messages: list[Message], state: State) -> str:
        return f"you said {messages[-1]['content']}"


def list_states() -> list[Any]:
    return [each for each in gc.get_objects() if type(each) is State]


def environment(kind: type[MultiTurnEnv] = Echoing, **settings: Any) -> MultiTurnEnv:
    return kind(ROWS, **{"rubric": Rubric(count), **settings})


# Turns


def test_a_finished_rollout_leaves_nothing_to_the_garbage_collector(play: Play) -> None:
    gc.collect()
    gc.disable()
    try:
        before = list_states()
        play(environment(max_turns=2), Scripted(["one", "two"]))
        left = [state for state in list_states() if not any(state is each for each in before)]
    finally:
        gc.enable()

    assert left == []


def test_turns_alternate_until_there_were_enough(play: Play) -> None:
    model = Scripted(["one", "two", "three", "four"])

    (rollout,) = play(environment(max_turns=3), model)

    assert texts(rollout.trace.completion) == [
        "assistant: one",
        "user: you said one",
        "assistant: two",
        "user: you said two",
        "assistant: three",
    ]
    assert rollout.trace.stop_condition == "max_turns_reached"
    assert reward(rollout) == 3.0
    assert rollout.score is not None
    assert rollout.score.metrics == {"num_turns": 3.0, "count": 3.0}
    assert [len(request.messages) for request in model.requests] == [1, 3, 5]
    assert texts(model.requests[2].messages)[:2] == ["user: Begin.", "assistant: one"]


def test_a_single_turn_is_one_question_and_one_answer(play: Play) -> None:
    (rollout,) = play(SingleTurnEnv(ROWS, rubric=Rubric(count)), ["one", "two"])

    assert texts(rollout.trace.completion) == ["assistant: one"]
    assert rollout.score is not None
    assert rollout.score.metrics == {"count": 1.0}


def test_the_environment_may_answer_with_several_messages_or_none_at_all(play: Play) -> None:
    class Talkative(MultiTurnEnv):
        async def env_response(self, messages: list[Message], state: State) -> list[Message]:
            return [{"role": "tool", "content": "a"}, {"role": "user", "content": "b"}][: 3 - state["turn"]]

    (rollout,) = play(environment(Talkative, max_turns=4), ["x"])

    assert [message["role"] for message in rollout.trace.completion] == [
        *("assistant", "tool", "user", "assistant", "tool", "assistant", "assistant")
    ]


def test_an_environment_that_forgets_to_answer_is_told_so(play: Play) -> None:
    class Silent(MultiTurnEnv):
        async def env_response(self, messages: list[Message], state: State) -> Any:
            return None

    (rollout,) = play(environment(Silent, max_turns=2), ["x"])

    assert rollout.outcome == "environment_error"
    assert rollout.failure is not None
    assert "Silent.env_response returned None; return messages or a text" in rollout.failure.message


def test_an_environment_without_a_response_of_its_own_is_told_so(play: Play) -> None:
    (rollout,) = play(environment(MultiTurnEnv, max_turns=2), ["x"])

    assert rollout.failure is not None
    assert "MultiTurnEnv does not define env_response" in rollout.failure.message


def test_the_model_may_be_shown_something_else_than_the_conversation(play: Play) -> None:
    class Forgetful(Echoing):
        def get_prompt_messages(self, state: State) -> list[Message]:  # type: ignore[override]
            return [{"role": "user", "content": f"turn {state['turn']}"}]

    model = Scripted(["a"])
    play(environment(Forgetful, max_turns=2), model)

    assert [texts(request.messages) for request in model.requests] == [["user: turn 0"], ["user: turn 1"]]


def test_sampling_of_the_environment_goes_with_every_request(play: Play) -> None:
    model = Scripted(["a"])

    play(environment(max_turns=2, sampling_args={"temperature": 0.1}), model)

    assert [request.sampling for request in model.requests] == [{"temperature": 0.1}] * 2


# What ends it


def test_the_environment_may_say_the_last_word(play: Play) -> None:
    class Final(Echoing):
        async def env_response(self, messages: list[Message], state: State) -> str:
            if state["turn"] == 2:
                state["final_env_response"] = "enough"
            return "go on"

    (rollout,) = play(environment(Final), ["x"])

    assert rollout.trace.stop_condition == "has_final_env_response"
    assert reward(rollout) == 2.0


def test_stop_conditions_end_it_under_their_own_name_the_most_important_first(play: Play) -> None:
    asked: list[str] = []

    class Stopping(Echoing):
        @stop
        async def said_done(self, state: State) -> bool:
            asked.append("said_done")
            return bool(state["completion"]) and state["completion"][-1]["content"] == "done"

        @stop(priority=10)
        def was_rude(self, state: State) -> bool:
            asked.append("was_rude")
            return any("damn" in str(message["content"]) for message in state["completion"])

    (done,) = play(environment(Stopping), ["hm", "done"])
    assert done.trace.stop_condition == "said_done"
    assert reward(done) == 2.0
    assert asked[:2] == ["was_rude", "said_done"]

    (rude,) = play(environment(Stopping), ["damn done"])
    assert rude.trace.stop_condition == "was_rude"


class Ringing(MultiTurnEnv):
    """Its second answer ends it."""

    async def env_response(self, messages: list[Message], state: State) -> str:
        state["rings"] = state.get("rings", 0) + 1
        return f"ring {state['rings']}"

    @stop
    def rang_twice(self, state: State) -> bool:
        return bool(state.get("rings", 0) >= 2)


def test_as_in_verifiers_the_model_sees_the_answer_after_which_a_stop_condition_holds(play: Play) -> None:
    (rollout,) = play(environment(Ringing), ["a", "b", "c", "d"])

    assert [each["content"] for each in rollout.trace.completion] == ["a", "ring 1", "b", "ring 2", "c"]
    assert (rollout.trace.stop_condition, reward(rollout)) == ("rang_twice", 3.0)


def test_an_environment_may_be_ended_by_its_own_answer(play: Play) -> None:
    (rollout,) = play(environment(Ringing, stops_after_response=True), ["a", "b", "c", "d"])

    assert [each["content"] for each in rollout.trace.completion] == ["a", "ring 1", "b", "ring 2"]
    assert (rollout.trace.stop_condition, reward(rollout)) == ("rang_twice", 2.0)


def test_it_may_be_over_before_the_model_is_asked(play: Play) -> None:
    class Unwilling(Echoing):
        @stop
        def not_today(self, state: State) -> bool:
            return True

    model = Scripted(["x"])
    (rollout,) = play(environment(Unwilling), model)

    assert model.requests == []
    assert (rollout.outcome, rollout.trace.stop_condition) == ("scored", "not_today")
    assert rollout.trace.prompt == [{"role": "user", "content": "Begin."}]


def test_a_budget_of_tokens_ends_it(play: Play) -> None:
    (rollout,) = play(environment(max_total_completion_tokens=5), ["two words"])

    assert rollout.trace.stop_condition == "max_total_completion_tokens_reached"
    assert reward(rollout) == 3.0


def test_an_answer_cut_short_is_scored_and_called_truncated(play: Play) -> None:
    cut = Step(text="I was about to", finish_reason="length")

    (rollout,) = play(environment(max_turns=2), [cut, "fine"], columns=("is_truncated",))

    assert rollout.outcome == "truncated"
    assert reward(rollout) == 2.0
    assert rollout.columns == {"is_truncated": True}


def test_a_conversation_that_no_longer_fits_is_scored_as_far_as_it_came(play: Play) -> None:
    (rollout,) = play(environment(), ["one", "two", Step(error="context_too_long")])

    assert (rollout.outcome, rollout.trace.stop_condition) == ("truncated", "prompt_too_long")
    assert reward(rollout) == 2.0
    assert rollout.failure is None


# Hooks


def test_setup_prepares_each_rollout_by_itself(play: Play) -> None:
    class Prepared(Echoing):
        async def setup_state(self, state: State) -> None:
            state["seen"] = [state["example_id"]]
            state["prompt"].append({"role": "user", "content": "And be kind."})

        async def env_response(self, messages: list[Message], state: State) -> str:
            state["seen"].append(state["turn"])
            return "go on"

    env = Prepared([{"question": "a"}, {"question": "b"}], rubric=Rubric(count), max_turns=2)

    first, second = play(env, ["x"], columns=("seen",))

    assert (first.columns, second.columns) == ({"seen": [0, 1]}, {"seen": [1, 1]})
    assert texts(first.trace.prompt) == ["user: a", "user: And be kind."]
    assert len(next(iter(env.tasks())).prompt) == 1, "the task itself is left as it was"


def test_setup_may_return_a_state_or_what_to_add_to_it(play: Play) -> None:
    class Returning(Echoing):
        async def setup_state(self, state: State) -> Any:
            return {"secret": 7}

    (rollout,) = play(environment(Returning, max_turns=1), ["x"], columns=("secret", "answer"))

    assert rollout.columns == {"secret": 7, "answer": ""}


def test_hooks_may_block_and_never_run_where_the_loop_runs(play: Play) -> None:
    threads: dict[str, int] = {}

    class Blocking(MultiTurnEnv):
        def setup_state(self, state: State) -> None:  # type: ignore[override]
            threads["setup_state"] = threading.get_ident()

        def env_response(self, messages: list[Message], state: State) -> str:  # type: ignore[override]
            threads["env_response"] = threading.get_ident()
            return "go on"

        @stop
        def is_over(self, state: State) -> bool:
            threads["stop"] = threading.get_ident()
            return False

        @cleanup
        def sweep(self, state: State) -> None:
            threads["cleanup"] = threading.get_ident()

        @teardown
        def demolish(self) -> None:
            threads["teardown"] = threading.get_ident()

    (rollout,) = play(environment(Blocking, max_turns=2), ["x"])

    assert rollout.outcome == "scored"
    assert threads.keys() == {"setup_state", "env_response", "stop", "cleanup", "teardown"}
    assert threading.get_ident() not in threads.values()


class Tidy(Echoing):
    """Notes down what is called."""

    def __init__(self, *args: Any, fails_in: str = "", **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.called: list[str] = []
        self.fails_in = fails_in

    def note(self, name: str) -> None:
        self.called.append(name)
        if self.fails_in == name:
            raise ValueError(f"{name} failed")

    async def setup_state(self, state: State) -> None:
        self.note("setup")

    async def env_response(self, messages: list[Message], state: State) -> str:
        self.note("response")
        return "go on"

    @cleanup
    async def sweep(self, state: State) -> None:
        self.note("sweep")

    @cleanup(priority=5)
    def switch_off(self, state: State) -> None:
        self.note("switch off")

    @teardown
    async def lock(self) -> None:
        self.note("lock")

    @teardown(priority=1)
    def shut(self) -> None:
        self.note("shut")


def test_cleanup_comes_after_each_rollout_and_teardown_once_by_priority(play: Play) -> None:
    env = Tidy(ROWS * 2, rubric=Rubric(count), max_turns=1)

    play(env, ["x"], at_once=1)

    assert env.called == [*("setup", "switch off", "sweep") * 2, "shut", "lock"]


@pytest.mark.parametrize(
    ("fails_in", "outcome"),
    [("setup", "environment_error"), ("response", "environment_error"), ("", "model_error")],
)
def test_cleanup_comes_however_a_rollout_ends(play: Play, fails_in: str, outcome: str) -> None:
    env = Tidy(ROWS, rubric=Rubric(count), max_turns=2, fails_in=fails_in)

    (rollout,) = play(env, ["x", Step(error="refused")])

    assert rollout.outcome == outcome
    assert env.called[-4:] == ["switch off", "sweep", "shut", "lock"]


def test_cleanup_comes_after_scoring_which_may_still_need_what_there_is(play: Play) -> None:
    env = Tidy(ROWS, max_turns=1)

    def alive() -> float:
        return float("sweep" not in env.called)

    env.rubric.add_reward_func(alive)

    (rollout,) = play(env, ["x"])

    assert reward(rollout) == 1.0


def test_a_failing_cleanup_leaves_the_score_and_the_other_cleanups_alone(play: Play) -> None:
    env = Tidy(ROWS, rubric=Rubric(count), max_turns=1, fails_in="switch off")

    (rollout,) = play(env, ["x"])

    assert (rollout.outcome, reward(rollout)) == ("scored", 1.0)
    assert rollout.cleanup_failure is not None
    assert rollout.cleanup_failure.message == "switch off failed"
    assert "sweep" in env.called


def test_a_rollout_that_took_too_long_is_cleaned_up_too(play: Play) -> None:
    env = Tidy(ROWS, rubric=Rubric(count), max_turns=1)

    (rollout,) = play(env, [Step(text="x", delay_seconds=30)], rollout_seconds=0.05)

    assert rollout.outcome == "model_error"
    assert env.called == ["setup", "switch off", "sweep", "shut", "lock"]


def test_hooks_are_inherited_and_may_be_replaced(play: Play) -> None:
    class Tidier(Tidy):
        async def sweep(self, state: State) -> None:
            self.note("not marked any more")

        @cleanup(priority=-1)
        async def polish(self, state: State) -> None:
            self.note("polish")

    env = Tidier(ROWS, rubric=Rubric(count), max_turns=1)
    play(env, ["x"])

    assert env.called == ["setup", "switch off", "polish", "shut", "lock"]


# Settings


def test_settings_are_set_by_name_and_unknown_ones_refused() -> None:
    class Scaled(Echoing):
        scale = 1

        def set_scale(self, scale: int) -> None:
            self.scale = scale * 10

    env = environment(Scaled)

    env.configure({"max_turns": 7, "scale": 2})

    assert (env.max_turns, env.scale) == (7, 20)  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="Scaled has no setting 'max_turn'; did you mean 'max_turns'"):
        env.configure({"max_turn": 7})
    with pytest.raises(ConfigError, match="has no setting '_source'"):
        env.configure({"_source": []})


def test_set_concurrency_sizes_every_pool() -> None:
    own = ThreadPoolExecutor(2)
    env = environment()
    env.register_executor(own)

    async def resize() -> int:
        env.set_concurrency(100)
        loop = asyncio.get_running_loop()
        workers: int = loop._default_executor._max_workers  # type: ignore[attr-defined]
        return workers

    assert asyncio.run(resize()) == 100
    assert env.threads.most == 100
    assert own._max_workers == 100
    env.set_concurrency(7)
    assert env.threads.most == 7
    own.shutdown()


def test_threads_are_at_least_a_few_and_at_most_very_many() -> None:
    assert [recommended_max_workers(count) for count in (1, 50, 10_000_000)] == [4, 50, 1024]


def test_pools_are_sized_by_how_much_happens_at_once_or_as_one_says() -> None:
    env = environment(max_turns=1)

    asyncio.run(evaluate(env, Scripted(["x"]), max_concurrent=48))
    assert env.threads.most == 48

    asyncio.run(evaluate(env, Scripted(["x"]), extra_env_kwargs={"concurrency": 200}))
    assert env.threads.most == 200

    group = EnvGroup([env, environment(max_turns=1)], ["a", "b"])
    asyncio.run(evaluate(group, Scripted(["x"]), max_concurrent=9))
    assert env.threads.most == 9


def test_an_environment_with_few_places_is_never_crowded(play: Play) -> None:
    inside: list[int] = []

    class Narrow(Echoing):
        open_now = 0

        async def setup_state(self, state: State) -> None:
            self.open_now += 1
            inside.append(self.open_now)
            await asyncio.sleep(0.002)

        @cleanup
        async def leave(self, state: State) -> None:
            self.open_now -= 1

    env = Narrow(ROWS * 12, rubric=Rubric(count), max_turns=1, capacity=2)

    assert len(play(env, ["x"])) == 12
    assert max(inside) == 2
