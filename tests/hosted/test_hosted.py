"""`proctor eval run --hosted`: what is asked of the server, what is refused, what is shown, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.api.runs import Cause, Permissions
from tests.conftest import Ran
from tests.hosted.double import Double
from tests.waiting import SECONDS

Command = Callable[..., Ran]


@pytest.fixture
def hosted(evals: Command) -> Command:
    """`proctor eval run … --hosted`, logged in."""

    return lambda *words: evals("run", *words, "--hosted")


def test_only_what_was_given_is_asked_of_the_server(hosted: Command, server: Double) -> None:
    done = hosted(
        *("ada/echo@1.2.0", "-m", "gpt", "-n", "7", "-a", '{"split": "test"}', "-T", "0.5"),
        *("--eval-name", "nightly", "--timeout-minutes", "30", "--allow-sandbox-access", "--max-cost", "2.5"),
    )
    assert done.code == 0, done.stderr
    (new,) = server.asked
    assert (new.environment, new.model, new.name) == ("ada/echo@1.2.0", "gpt", "nightly")
    assert new.settings == {"env_args": {"split": "test"}, "num_examples": 7, "temperature": 0.5}
    assert new.permissions == Permissions(sandboxes=True)
    assert (new.timeout_minutes, new.max_cost_usd) == (30, 2.5)


def test_nothing_is_granted_unless_it_is_asked_for(hosted: Command, server: Double) -> None:
    hosted("ada/echo")
    assert server.asked[0].permissions == Permissions()
    assert server.asked[0].timeout_minutes == 120


def test_a_start_tells_the_id_the_version_and_what_to_do_next(hosted: Command) -> None:
    done = hosted("ada/echo", "-m", "gpt")
    assert "run-1  ada/echo@1.0.0 (c0ffeec0ffee) with gpt, pending" in done.stdout
    assert "proctor eval logs run-1 -f" in done.stdout
    assert "May cost about $0.0200 ($0.0100 to $0.0400) for 15 rollouts" in done.stderr


def test_json_puts_the_run_and_the_estimate_on_stdout_and_nothing_else(
    hosted: Command, server: Double
) -> None:
    document = json.loads(hosted("ada/echo", "--json").stdout)
    assert document["runs"][0]["id"] == "run-1"
    assert document["estimates"][0]["likely_usd"] == 0.02


def test_flags_for_a_server_are_refused_by_name_without_one(proctor: Command) -> None:
    done = proctor("eval", "run", "echo", "--follow", "--timeout-minutes", "5", "--no-allow-network-access")
    assert done.code == 2
    assert "--follow, --timeout-minutes and --no-allow-network-access are for runs on a server" in done.stderr


def test_flags_for_this_machine_are_refused_by_name_on_a_server(hosted: Command, server: Double) -> None:
    done = hosted("ada/echo", "-w", "2", "-s", "-o", "out", "--upload", "--listener", "otel")
    assert done.code == 2
    flags = (
        "--num-workers, --save-results, --output-dir, --listener and --upload are for runs on this machine"
    )
    assert flags in done.stderr
    assert server.requests == []


@pytest.mark.parametrize("minutes", ["0", "1441"])
def test_a_time_limit_out_of_range_is_refused_before_anything_starts(
    minutes: str, hosted: Command, server: Double
) -> None:
    done = hosted("ada/echo", "--timeout-minutes", minutes)
    assert (done.code, server.requests) == (2, [])
    assert "give 1 to 1440 minutes" in done.stderr


def test_a_bare_name_is_one_of_ones_own(hosted: Command, server: Double) -> None:
    assert hosted("my-env", "-m", "gpt").code == 0
    assert server.asked[0].environment == "my-env"


@pytest.mark.parametrize("words", [("./my-env",), ("tasks.py",)])
def test_a_path_is_told_how_it_gets_to_a_server(hosted: Command, words: tuple[str, ...]) -> None:
    done = hosted(*words)
    assert done.code == 2
    assert "names no environment on a server" in done.stderr
    assert "which you publish with `proctor env push`" in done.stderr


def test_an_environment_of_a_server_that_is_not_here_is_told_how_to_run_it_there(proctor: Command) -> None:
    done = proctor("eval", "ada/gsm8k", "-m", "scripted")
    assert done.code == 2
    assert (
        "log in with `proctor login URL`; then this command fetches it, --hosted runs it there" in done.stderr
    )
    assert "`proctor env install ada/gsm8k`" in done.stderr


def test_the_bare_name_of_a_pushed_environment_is_answered_with_its_whole_name(proctor: Command) -> None:
    done = proctor("eval", "gsm8k", "-m", "scripted")
    assert done.code == 2
    assert "One that was pushed to a server is called OWNER/gsm8k." in done.stderr
    assert "OWNER" not in proctor("eval", "ehco", "-m", "scripted").stderr  # did you mean 'echo'?


def test_remote_means_hosted_and_get_means_info(evals: Command, server: Double) -> None:
    assert evals("run", "ada/echo", "-m", "gpt", "--remote").code == 0
    assert server.asked[0].environment == "ada/echo"
    assert "run-1" in evals("get", "run-1").stdout


def test_without_a_login_the_next_step_is_named(proctor: Command) -> None:
    done = proctor("eval", "run", "ada/echo", "--hosted")
    assert done.code == 2
    assert "proctor login" in done.stderr


def test_a_refused_token_names_the_login_too(proctor: Command, server: Double) -> None:
    environ = {**server.environ(), "PROCTOR_API_KEY": "wrong"}
    done = proctor("eval", "run", "ada/echo", "--hosted", environ=environ)
    assert done.code == 2
    assert "proctor login" in done.stderr


def test_secrets_come_from_variables_a_file_or_json_and_are_never_shown(
    hosted: Command, server: Double, proctor: Command, tmp_path: Path
) -> None:
    (tmp_path / "keys.env").write_text("# mine\nexport FILE_KEY='s3cret'\n")
    hosted("ada/echo", "--custom-secrets", "@keys.env")
    hosted("ada/echo", "--custom-secrets", '{"JSON_KEY": "s3cret"}')
    words = ("eval", "run", "ada/echo", "--hosted", "--custom-secrets", "VAR_KEY", "--dry-run")
    done = proctor(*words, environ={**server.environ(), "VAR_KEY": "s3cret"})
    assert [dict(new.custom_secrets) for new in server.asked] == [
        {"FILE_KEY": "s3cret"},
        {"JSON_KEY": "s3cret"},
    ]
    assert json.loads(done.stdout)["requests"][0]["custom_secrets"] == ["VAR_KEY"]
    assert "s3cret" not in done.stdout + done.stderr


def test_a_dry_run_shows_the_request_and_the_estimate_and_starts_nothing(
    hosted: Command, server: Double
) -> None:
    done = hosted("ada/echo", "-n", "3", "--dry-run")
    assert json.loads(done.stdout)["requests"][0]["settings"] == {"num_examples": 3}
    assert "May cost about" in done.stderr
    assert server.runs == {}


def test_a_dry_run_of_what_the_server_would_refuse_says_so_and_fails(hosted: Command, server: Double) -> None:
    server.refuses_after = 0
    done = hosted("ada/echo", "--dry-run")
    assert (done.code, done.stdout) == (2, "")
    assert "There is no model like that" in done.stderr


def test_a_dry_run_that_the_server_did_not_answer_was_not_checked_and_says_so(
    hosted: Command, server: Double, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("proctor.cli.commands.hosted.ESTIMATE_SECONDS", 0.0)
    done = hosted("ada/echo", "--dry-run")
    assert (done.code, json.loads(done.stdout)["estimates"]) == (0, [None])
    assert "did not answer, so the request was not checked" in done.stderr


# Following


def test_following_shows_the_lines_and_the_report_and_ends_with_the_run(
    hosted: Command, server: Double
) -> None:
    server.plays()
    done = hosted("ada/echo", "--follow")
    assert done.code == 0, done.stderr
    assert done.stderr.count("hello from ada/echo") == 1
    assert "Finished after" in done.stderr
    assert "2/2" in done.stderr.replace("2 of 2", "2/2")
    assert "2 of 2 rollouts, 0 failed" in done.stdout


@pytest.mark.parametrize(("status", "code"), [("failed", 1), ("stopped", 5), ("timed_out", 6)])
def test_the_exit_code_says_how_a_run_ended_and_the_cause_is_told(
    status: Any, code: int, hosted: Command, server: Double
) -> None:
    server.plays(status, Cause(code="time_limit", message="It went wrong.", next_step="Do better."))
    done = hosted("ada/echo", "--follow")
    assert done.code == code
    assert "It went wrong." in done.stdout
    assert "Do better." in done.stdout


def test_a_finished_run_with_too_little_scored_is_a_failure_unless_that_is_enough(
    hosted: Command, server: Double
) -> None:
    server.plays(scored=1)
    assert hosted("ada/echo", "--follow").code == 1
    assert hosted("ada/echo", "--follow", "--min-coverage", "0.5").code == 0


def test_ctrl_c_leaves_the_run_to_itself_and_says_how_to_stop_it(server: Double, tmp_path: Path) -> None:
    server.on_start = lambda run: server.say(run.id, "one line")
    words = [sys.executable, "-m", "proctor", "eval", "run", "ada/echo", "--hosted", "--follow"]
    process = subprocess.Popen(
        words, cwd=tmp_path, env={**os.environ, **server.environ()}, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    seen = ""
    while "one line" not in seen:
        line = process.stderr.readline()
        assert line, seen
        seen += line
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    process.stderr.close()
    assert process.wait(SECONDS) == 130
    assert "The run continues." in rest
    assert "proctor eval stop run-1" in rest
    assert server.runs["run-1"].status == "pending"


# Suites

SUITE = """
model = "gpt"
timeout_minutes = 60

[[eval]]
env_id = "ada/echo"
num_examples = 2

[[ablation]]
env_id = "ada/sums"
allow_network_access = true
[ablation.sweep]
temperature = [0.0, 1.0]
"""


def test_a_suite_becomes_one_run_for_each_evaluation_and_combination(
    hosted: Command, server: Double, tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    server.plays()
    done = hosted("suite.toml", "--follow", "--max-cost", "1")
    assert done.code == 0, done.stderr
    assert [new.environment for new in server.asked] == ["ada/echo", "ada/sums", "ada/sums"]
    assert [new.settings.get("temperature") for new in server.asked] == [None, 0.0, 1.0]
    assert {new.timeout_minutes for new in server.asked} == {60}
    assert {new.max_cost_usd for new in server.asked} == {1.0}
    assert [new.permissions.network for new in server.asked] == [False, True, True]
    assert "[ada/echo@1.0.0 · gpt] INFO hello from ada/echo" in done.stderr


def test_nothing_of_a_suite_is_started_when_anything_in_it_is_wrong(
    hosted: Command, server: Double, tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text(
        SUITE + '\n[[eval]]\nenv_id = "./bare"\n\n[[eval]]\nenv_id = "a/b"\nnum_workers = 2\n'
    )
    done = hosted("suite.toml")
    assert (done.code, server.requests) == (2, [])
    assert "suite.toml:15: './bare' names no environment on a server" in done.stderr
    assert "suite.toml:18: 'num_workers' is for runs on this machine" in done.stderr


def test_a_suite_that_the_server_refuses_has_started_nothing(
    hosted: Command, server: Double, tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    server.refuses_after = 1
    done = hosted("suite.toml")
    assert (done.code, server.runs) == (2, {})
    assert "run-1" not in done.stdout
    assert "no model like that" in done.stderr


def test_a_suite_for_a_server_that_is_too_old_says_so(
    hosted: Command, server: Double, tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    server.is_old = True
    done = hosted("suite.toml")
    assert (done.code, server.runs) == (1, {})
    assert "too old to start several runs at once" in done.stderr


def test_a_suite_may_say_itself_that_a_server_plays_it(
    proctor: Command, server: Double, tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text(f"hosted = true\n{SUITE}")
    assert proctor("eval", "run", "suite.toml", environ=server.environ()).code == 0
    assert len(server.asked) == 3


def test_a_suite_with_limits_for_a_server_is_not_played_here_without_them(
    proctor: Command, tmp_path: Path
) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    done = proctor("eval", "run", "suite.toml")
    assert done.code == 2
    assert "'timeout_minutes' is for runs on a server; add --hosted" in done.stderr
