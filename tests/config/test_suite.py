"""Suites: which evaluations a file asks for, in which order, and what is said about a file that cannot be."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proctor.config.providers import PROVIDERS
from proctor.config.registry import read_registry
from proctor.config.schema import EvalConfig, Presentation
from proctor.config.sources import resolve
from proctor.config.suite import Suite, SuiteEntry, ignored_flags, parse_environments, read_suite
from proctor.config.sweep import LONGEST_LABEL, truncate_with_digest
from proctor.errors import ConfigError, FileError
from proctor.packages import loading as packages
from proctor.store.locate import to_path_part

Written = Callable[[str, str], Path]

ROOT = Path(__file__).parent.parent.parent
GUIDE = Path(__file__).parent / "guide"


def settings_of(suite: Suite, *left_out: str) -> list[dict[str, Any]]:
    """What every entry was given, without what every suite says."""
    hidden = ("save_results", *left_out)
    return [
        {name: entry.given[name] for name in entry.given if name not in hidden} for entry in suite.entries
    ]


def labels(suite: Suite) -> list[str]:
    return [entry.given.get("label", "") for entry in suite.entries]


def problems(path: Path) -> list[str]:
    with pytest.raises(FileError) as raised:
        read_suite(path)
    return list(raised.value.problems)


# The guide, as it stands


def test_the_benchmark_of_the_guide_has_three_evaluations() -> None:
    suite = read_suite(GUIDE / "my_benchmark.toml")

    model = "openai/gpt-4.1-mini"
    assert settings_of(suite) == [
        {"env_id": "gsm8k", "model": model, "num_examples": 100, "rollouts_per_example": 5},
        {"env_id": "alphabet-sort", "model": model, "num_examples": 50, "rollouts_per_example": 3},
        {"env_id": "math-python", "model": model, "num_examples": 50},
    ]
    assert suite.presentation == {}


def test_the_minimal_suite_of_the_guide_is_one_evaluation() -> None:
    suite = read_suite(GUIDE / "minimal.toml")

    assert settings_of(suite) == [{"env_id": "gsm8k"}]
    assert suite.entries[0].given["save_results"] is True


def test_the_arguments_of_the_guide_reach_the_environment() -> None:
    suite = read_suite(GUIDE / "env_args.toml")

    arguments = {"difficulty": "hard", "split": "test"}
    assert settings_of(suite) == [{"env_id": "math-python", "num_examples": 50, "env_args": arguments}]


def test_the_sweep_of_the_guide_has_six_evaluations_the_last_list_turning_fastest() -> None:
    suite = read_suite(GUIDE / "ablation.toml")

    assert settings_of(suite) == [
        {
            "env_id": "my-env",
            "model": "openai/gpt-4.1-mini",
            "num_examples": 50,
            "temperature": temperature,
            "env_args": {"split": "test", "difficulty": difficulty},
            "label": f"temperature={temperature} difficulty={difficulty}",
        }
        for temperature in (0.0, 0.5, 1.0)
        for difficulty in ("easy", "hard")
    ]


def test_the_package_defaults_of_the_guide_are_found(tmp_path: Path) -> None:
    home = tmp_path / "environments" / "my_env"
    home.mkdir(parents=True)
    (home / "pyproject.toml").write_bytes((GUIDE / "package_defaults.toml").read_bytes())

    defaults, source = packages.package_defaults(
        packages.find_environment("my-env", str(tmp_path / "environments"))
    )

    assert defaults == {"num_examples": 100, "rollouts_per_example": 5}
    assert source == "[tool.verifiers.eval] of my_env/pyproject.toml"


def test_every_suite_and_registry_in_the_repository_can_be_read() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.toml"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    read = []
    for path in (ROOT / name for name in listed.stdout.splitlines()):
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        if {"eval", "ablation"} & document.keys():
            assert read_suite(path).entries
            read.append(path.name)
        elif "endpoint" in document:
            assert read_registry(path).endpoints
            read.append(path.name)

    assert {"suite.toml", "endpoints.toml", "my_benchmark.toml", "ablation.toml"} <= set(read)


# What wins


def test_a_block_wins_over_the_top_of_the_file(written: Written) -> None:
    path = written(
        "s.toml",
        """
model = "m"
temperature = 1
env_args = { a = 1, b = 2 }
sampling = { top_p = 0.5 }
[[eval]]
id = "one"
[[eval]]
env_id = "two"
temperature = 0.5
args = { a = 3 }
save_results = false
""",
    )

    one, two = read_suite(path).entries

    assert one.given["env_args"] == {"a": 1, "b": 2}
    assert two.given["env_args"] == {"a": 3}, "a table is replaced as a whole"
    assert [each.given["temperature"] for each in (one, two)] == [1.0, 0.5]
    assert two.given["sampling_args"] == {"top_p": 0.5}
    assert [each.given["save_results"] for each in (one, two)] == [True, False]
    assert (one.line, two.line) == (6, 8)
    assert (one.origins["temperature"], two.origins["temperature"]) == ("s.toml:3", "s.toml:10")


def test_blocks_keep_the_order_of_the_file(written: Written) -> None:
    path = written(
        "s.toml",
        '[[ablation]]\nenv_id="a"\nsweep={seed=[1,2]}\n[[eval]]\nenv_id="b"\n'
        '[[ablation]]\nenv_id="c"\nsweep={seed=[3]}\n',
    )

    assert [entry.given["env_id"] for entry in read_suite(path).entries] == ["a", "a", "b", "c"]


def test_an_environment_may_stand_at_the_top(written: Written) -> None:
    path = written("s.toml", 'env_id = "gsm8k"\n[[eval]]\nmodel = "a"\n[[eval]]\nmodel = "b"\n')

    assert settings_of(read_suite(path)) == [{"env_id": "gsm8k", "model": name} for name in "ab"]


def test_a_model_in_a_block_drops_an_inherited_endpoint_and_the_other_way_round(written: Written) -> None:
    by_endpoint = written(
        "a.toml", 'endpoint_id = "fast"\n[[eval]]\nid = "x"\nmodel = "m"\n[[eval]]\nid = "y"\n'
    )
    by_model = written(
        "b.toml",
        'model = "m"\napi_base_url = "http://localhost:1/v1"\nprovider = "vllm"\n'
        '[[eval]]\nid = "x"\nendpoint_id = "fast"\n[[eval]]\nid = "y"\n',
    )

    assert settings_of(read_suite(by_endpoint)) == [
        {"env_id": "x", "model": "m"},
        {"env_id": "y", "endpoint_id": "fast"},
    ]
    assert settings_of(read_suite(by_model)) == [
        {"env_id": "x", "endpoint_id": "fast"},
        {"env_id": "y", "model": "m", "api_base_url": "http://localhost:1/v1", "provider": "vllm"},
    ]


def test_headers_are_joined_line_over_table_and_block_over_top(written: Written) -> None:
    path = written(
        "s.toml",
        """
headers = { X-A = "top", X-B = "top", X-C = "top" }
header = ["x-b: top line"]
header_from_state = ["X-Task: example_id"]
[[eval]]
env_id = "one"
headers = { x-c = "block", X-D = "block" }
header = ["X-D: a: b"]
headers_from_state = { X-Session-ID = "rollout" }
""",
    )

    (given,) = settings_of(read_suite(path))

    assert given["headers"] == {"X-A": "top", "x-b": "top line", "x-c": "block", "X-D": "a: b"}
    assert given["headers_from_state"] == {"X-Task": "example_id", "X-Session-ID": "rollout"}


def test_every_setting_may_be_written_by_its_name(written: Written) -> None:
    values = {
        "env_id": "e",
        "env_args": {"a": 1},
        "extra_env_kwargs": {"max_turns": 2},
        "env_dir_path": "envs",
        "isolated": True,
        "agent": "claude",
        "agent_args": {"system_prompt": "Think."},
        "runtime": "local",
        "runtime_args": {"start_seconds": 60},
        "max_steps": 3,
        "name": "mine",
        "model": "m",
        "endpoints_path": "/e.toml",
        "provider": "vllm",
        "api_key_var": "",
        "api_base_url": "http://localhost:1",
        "api_client_type": "local",
        "headers": {"X": "1"},
        "headers_from_state": {"Y": "turn"},
        "max_tokens": 7,
        "temperature": 0.5,
        "sampling_args": {"top_p": 0.9},
        "num_examples": -1,
        "rollouts_per_example": 2,
        "task_ids": ["a", 3],
        "shuffle": True,
        "seed": 5,
        "max_concurrent": 4,
        "max_concurrent_generation": 3,
        "max_concurrent_scoring": 2,
        "no_interleave_scoring": True,
        "independent_scoring": True,
        "num_workers": 2,
        "on": "ray://head:6379",
        "on_args": {"cpus": 2, "placement": "pack"},
        "max_retries": 1,
        "start_timeout": 90.5,
        "timeout": 60.5,
        "scoring_timeout": 30.5,
        "request_timeout": 10.5,
        "min_coverage": 0.5,
        "pass_threshold": 0.7,
        "until_halfwidth": 0.02,
        "until_decided": "latest",
        "max_cost": 2.5,
        "cache": True,
        "save_results": False,
        "output_dir": "out",
        "state_columns": ["turn"],
        "save_to_hf_hub": True,
        "hf_hub_dataset_name": "me/results",
    }
    assert values.keys() == {*EvalConfig.__struct_fields__} - {"label", "config_hash", "endpoint_id"}
    path = written(
        "s.toml", "[[eval]]\n" + "".join(f"{name} = {toml(value)}\n" for name, value in values.items())
    )

    (entry,) = read_suite(path).entries

    assert entry.given == {**values, "state_columns": ("turn",), "task_ids": ("a", 3)}
    assert entry.origins == {name: f"s.toml:{line}" for line, name in enumerate(values, 2)}


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(each) for each in value) + "]"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def test_second_names_of_fields_are_understood(written: Written) -> None:
    path = written(
        "s.toml",
        '[[eval]]\nid = "e"\nargs = { a = 1 }\nsampling = { top_k = 3 }\n'
        'shuffle_seed = 9\nresume_path = "old"\n',
    )

    (entry,) = read_suite(path).entries

    assert settings_of(read_suite(path)) == [
        {"env_id": "e", "env_args": {"a": 1}, "sampling_args": {"top_k": 3}, "seed": 9}
    ]
    assert entry.resume == "old"


def test_the_registry_lies_beside_the_suite_and_other_paths_in_the_working_directory(
    written: Written,
) -> None:
    path = written(
        "configs/eval/s.toml",
        'endpoints_path = "../endpoints.toml"\noutput_dir = "out"\n[[eval]]\nid = "./envs/e.py"\n'
        '[[eval]]\nid = "f"\nendpoints_path = "/etc/e.toml"\n',
    )

    first, second = read_suite(path).entries

    assert Path(first.given["endpoints_path"]) == Path("configs/eval/../endpoints.toml")
    assert (first.given["output_dir"], first.given["env_id"]) == ("out", "./envs/e.py")
    assert second.given["endpoints_path"] == "/etc/e.toml"


def test_dates_reach_the_environment_as_texts(written: Written) -> None:
    path = written(
        "s.toml", '[[eval]]\nid = "e"\nargs = { day = 2024-02-29, at = [1979-05-27T07:32:00Z, 07:32:00] }\n'
    )

    (given,) = settings_of(read_suite(path))

    assert given["env_args"] == {"day": "2024-02-29", "at": ["1979-05-27T07:32:00+00:00", "07:32:00"]}


# How it is shown and picked up


def test_how_a_suite_is_shown_may_be_said_anywhere(written: Written) -> None:
    path = written(
        "s.toml",
        'verbose = true\nlistener = ["otel"]\n[[eval]]\nid = "a"\nabbreviated_summary = true\n'
        '[[eval]]\nid = "b"\nheartbeat_url = "http://localhost:1/"\nverbose = true\n',
    )

    suite = read_suite(path)

    assert suite.presentation == {
        "verbose": True,
        "listener": ("otel",),
        "abbreviated_summary": True,
        "heartbeat_url": "http://localhost:1/",
    }
    assert Presentation(**suite.presentation).verbose
    assert settings_of(suite) == [{"env_id": "a"}, {"env_id": "b"}]


def test_a_suite_is_shown_in_one_way(written: Written) -> None:
    path = written("s.toml", 'disable_tui = true\n[[eval]]\nid = "a"\ndisable_tui = false\n')

    assert problems(path) == [
        "s.toml:4: 'disable_tui' applies to the whole suite, but line 1 says otherwise."
    ]


def test_resume_is_a_folder_or_true(written: Written) -> None:
    path = written(
        "s.toml",
        'resume = true\n[[eval]]\nid = "a"\n[[eval]]\nid = "b"\nresume = "old/run"\n'
        '[[eval]]\nid = "c"\nresume = false\n',
    )

    assert [entry.resume for entry in read_suite(path).entries] == ["latest", "old/run", None]


@pytest.mark.parametrize(
    "text",
    [
        'resume = "old"\n[[eval]]\nid = "a"\n[[eval]]\nid = "b"\n',
        '[[eval]]\nid = "a"\nresume = "old"\n[[eval]]\nid = "b"\nresume_path = "old"\n',
        '\n\n\n[[ablation]]\nid = "a"\nresume = "old"\nsweep = { seed = [1, 2] }\n',
    ],
)
def test_a_folder_is_resumed_once(written: Written, text: str) -> None:
    assert problems(written("s.toml", text)) == [
        "s.toml:4: several evaluations would resume old, which holds one run."
    ]


# Sweeps


def sweep(written: Written, text: str) -> Suite:
    return read_suite(written("s.toml", f'[[ablation]]\nenv_id = "e"\n{text}'))


def test_axes_turn_in_the_order_of_the_file_then_env_args_then_args(written: Written) -> None:
    suite = sweep(
        written,
        "[ablation.sweep]\nargs = { c = [1, 2] }\nenv_args = { b = [1, 2] }\n"
        "seed = [1, 2]\nmax_tokens = [1, 2]\n",
    )

    assert labels(suite)[:4] == [
        "seed=1 max_tokens=1 b=1 c=1",
        "seed=1 max_tokens=1 b=1 c=2",
        "seed=1 max_tokens=1 b=2 c=1",
        "seed=1 max_tokens=1 b=2 c=2",
    ]
    assert len(suite.entries) == 16
    assert suite.entries[1].given["env_args"] == {"b": 1, "c": 2}


def test_environments_and_models_may_be_swept_and_name_themselves(written: Written) -> None:
    path = written("s.toml", '[[ablation]]\n[ablation.sweep]\nenv_id = ["a", "b"]\nmodel = ["m", "n"]\n')

    assert settings_of(read_suite(path)) == [
        {"env_id": env_id, "model": model} for env_id in "ab" for model in "mn"
    ]


def test_a_named_sweep_over_environments_says_which(written: Written) -> None:
    path = written("s.toml", '[[ablation]]\nname = "mine"\nsweep = { id = ["a", "b"] }\n')

    assert labels(read_suite(path)) == ["env_id=a", "env_id=b"]


def test_a_sweep_wins_over_the_top_of_the_file(written: Written) -> None:
    path = written(
        "s.toml",
        'temperature = 1.0\nendpoint_id = "fast"\nenv_args = { a = 1, b = 1 }\n'
        '[[ablation]]\nid = "e"\n[ablation.sweep]\ntemperature = [0.5]\nmodel = ["m"]\nargs = { a = [2] }\n',
    )

    assert settings_of(read_suite(path), "label") == [
        {"env_id": "e", "temperature": 0.5, "model": "m", "env_args": {"a": 2, "b": 1}}
    ]


def test_whole_tables_and_keys_of_any_table_may_be_swept(written: Written) -> None:
    suite = sweep(
        written,
        "extra_env_kwargs = { max_turns = 3 }\n[ablation.sweep]\n"
        'env_args = [{ a = 1 }, { a = [true, "x"] }]\n'
        "sampling = { top_p = [0.5] }\nextra_env_kwargs = { depth = [1] }\n",
    )

    assert labels(suite) == ["env_args={a=1} top_p=0.5 depth=1", "env_args={a=[true,x]} top_p=0.5 depth=1"]
    assert suite.entries[0].given["sampling_args"] == {"top_p": 0.5}
    assert suite.entries[0].given["extra_env_kwargs"] == {"max_turns": 3, "depth": 1}


def test_a_key_that_is_also_a_field_is_called_in_full(written: Written) -> None:
    suite = sweep(written, "[ablation.sweep]\ntemperature = [1]\nenv_args = { temperature = [2] }\n")

    assert labels(suite) == ["temperature=1.0 env_args.temperature=2"]


def test_every_swept_value_knows_its_line(written: Written) -> None:
    first, second = sweep(written, "[ablation.sweep]\nseed = [\n  1,\n  2,\n]\n").entries

    assert (first.origins["seed"], second.origins["seed"]) == ("s.toml:5", "s.toml:6")
    assert first.origins["label"] == "s.toml:3"


def test_evaluations_that_would_be_called_the_same_are_numbered(written: Written) -> None:
    block = '[[eval]]\nid = "e"\n'
    path = written("s.toml", block + block + block + '[[ablation]]\nid = "e"\nsweep = { seed = [1, 1] }\n')

    assert labels(read_suite(path)) == ["", "#2", "#3", "seed=1", "seed=1 #2"]


def test_a_key_that_is_swept_is_told_apart_and_not_told(written: Written) -> None:
    suite = sweep(
        written,
        "[ablation.sweep]\n"
        'headers = [{ A = "1", Authorization = "Bearer hunter2" }, { A = "2", B = "sk-hunter3" }]\n'
        '[ablation.sweep.headers_from_state]\nX-Route = ["task"]\n',
    )
    keys = sweep(written, '[ablation.sweep.headers]\nX-Api-Key = ["hunter2", "hunter3"]\nX-Team = ["blue"]\n')

    assert not [label for label in labels(suite) + labels(keys) if "hunter" in label]
    assert len(set(labels(keys))) == 2
    assert labels(suite)[0].startswith("headers={A=1,Authorization=~")
    assert all(label.endswith(" X-Team=blue") for label in labels(keys))


def test_a_long_or_odd_value_gives_a_label_that_a_folder_can_have(written: Written) -> None:
    suite = sweep(
        written,
        '[ablation.sweep.env_args]\nprompt = ["a/b: c\\nd", "..", "", '
        + ", ".join(f'"{"é" * 300}{n}"' for n in range(2))
        + "]\n"
        + "".join(f'{letter * 20} = ["{letter * 30}"]\n' for letter in "uvwxyz"),
    )

    names = [to_path_part(label) for label in labels(suite)]

    assert len(set(names)) == 5
    assert all(len(name.encode()) <= LONGEST_LABEL + 20 for name in names)
    assert all(name.isprintable() and "/" not in name for name in names)


@given(st.text(max_size=200), st.text(max_size=200))
def test_cutting_keeps_texts_apart(one: str, other: str) -> None:
    assert (truncate_with_digest(one, 40) == truncate_with_digest(other, 40)) is (one == other)
    assert len(truncate_with_digest(one, 40).encode()) <= 40


# Mistakes


EVAL = '[[eval]]\nenv_id = "e"\n'
ABLATION = '[[ablation]]\nenv_id = "e"\n'

MISTAKES: list[tuple[str, int, str]] = [
    (EVAL + "num_example = 5", 3, "unknown field 'num_example'; did you mean 'num_examples'?"),
    ("xyzzy = 5\n" + EVAL, 1, "unknown field 'xyzzy'; `proctor eval run --help` lists the settings."),
    ("[[eval]]\nmodel = 'm'", 1, "this [[eval]] names no environment; add env_id."),
    ("[[ablation]]\nsweep = { seed = [1] }", 1, "this [[ablation]] names no environment; add env_id."),
    ("[eval]\nenv_id = 'e'", 1, "[eval] is one table; write [[eval]], with two brackets."),
    ("\n[ablation]\nenv_id = 'e'", 2, "[ablation] is one table; write [[ablation]], with two brackets."),
    ("[eval.env_args]\na = 1", 1, "[eval] is one table; write [[eval]], with two brackets."),
    ("eval = 3", 1, "'eval' must be blocks of the form [[eval]], not 3."),
    ("eval = []", 1, "'eval' is an empty list; write [[eval]] blocks."),
    ("model = 'm'", 1, "this suite has no evaluation; add an [[eval]] or [[ablation]] block."),
    ("", 1, "this suite has no evaluation; add an [[eval]] or [[ablation]] block."),
    ("[[eval]", 1, "this is not valid TOML: "),
    (EVAL + "id = 'f'", 3, "'env_id' and 'id' mean the same; keep one of them."),
    (
        EVAL + "sampling = {}\nsampling_args = {}",
        4,
        "'sampling' and 'sampling_args' mean the same; keep one of",
    ),
    (EVAL + "args = {}\nenv_args = {}", 4, "'args' and 'env_args' mean the same; keep one of them."),
    (EVAL + "seed = 1\nshuffle_seed = 1", 4, "'seed' and 'shuffle_seed' mean the same; keep one of them."),
    (EVAL + "model = 'm'\nendpoint_id = 'x'", 1, "'endpoint_id' and 'model' exclude each other;"),
    ("name = 'x'\n" + EVAL, 1, "'name' is one evaluation's; write it into its block."),
    (EVAL + "label = 'x'", 3, "sweeps set a run's label; name the run with 'name'."),
    (EVAL + "json = true", 3, "'json' belongs on the command line: --json."),
    (EVAL + "dry_run = true", 3, "'dry_run' belongs on the command line: --dry-run."),
    (EVAL + "taskset = 'x'", 3, "Proctor has no separate tasksets;"),
    (EVAL + "[eval.harness]\nid = 'x'", 3, "Proctor calls it an agent;"),
    (
        EVAL + "disable_env_server = true",
        3,
        "Proctor has no environment server to turn off; 'num_workers = 1'",
    ),
    (EVAL + "[eval.sweep]\nseed = [1]", 3, "a sweep belongs in an [[ablation]] block"),
    (
        EVAL + "[[endpoint]]\nmodel = 'm'",
        3,
        "[[endpoint]] belongs in a registry file, which 'endpoints_path'",
    ),
    # Kinds and ranges
    (EVAL + "num_examples = '5'", 3, "'num_examples' must be a whole number, not '5'."),
    (EVAL + "num_examples = true", 3, "'num_examples' must be a whole number, not true."),
    (EVAL + "num_examples = 2.5", 3, "'num_examples' must be a whole number, not 2.5."),
    (EVAL + "temperature = 'hot'", 3, "'temperature' must be a number, not 'hot'."),
    (EVAL + "shuffle = 1", 3, "'shuffle' must be true or false, not 1."),
    (EVAL + "model = ['m']", 3, "'model' must be a text, not a list."),
    (EVAL + "model = ' '", 3, "'model' is empty."),
    ("[[eval]]\nenv_id = ''", 2, "'env_id' is empty."),
    (EVAL + "args = 3", 3, "'args' must be a table, not 3."),
    (EVAL + "headers = { X = 1 }", 3, "'X' in 'headers' must be a text, not 1."),
    (
        EVAL + "headers = { 'X Y' = '1' }",
        3,
        "'headers' cannot be sent: 'X Y' is not a valid HTTP header name.",
    ),
    (EVAL + "header = 'X: 1'", 3, "'header' must be a list of 'Name: Value' lines, not 'X: 1'."),
    (EVAL + "header = [\n'X: 1',\n'X']", 5, "'header' must hold 'Name: Value' lines, and this is none."),
    (EVAL + "header = ['X Y: 1']", 3, "'header' cannot be sent: 'X Y' is not a valid HTTP header name."),
    (EVAL + "state_columns = 'a,b'", 3, "'state_columns' must be a list of texts, not 'a,b'."),
    (EVAL + "num_workers = 0", 3, "'num_workers' is 0; give a number of processes, or auto."),
    (EVAL + "num_workers = 'many'", 3, "'num_workers' is 'many'; give a number of processes, or auto."),
    (EVAL + "num_workers = [1]", 3, "'num_workers' must be a whole number or \"auto\", not a list."),
    (EVAL + "num_examples = 0", 3, "'num_examples' is 0; give a number of tasks, or -1 for all."),
    (EVAL + "rollouts_per_example = 0", 3, "'rollouts_per_example' is 0, and must be at least 1."),
    (EVAL + "timeout = 0", 3, "'timeout' is 0, and must be more than 0 seconds."),
    (EVAL + "start_timeout = 0", 3, "'start_timeout' is 0, and must be more than 0 seconds."),
    (EVAL + "timeout = inf", 3, "'timeout' is inf, and must be a finite number."),
    (EVAL + "min_coverage = 1.5", 3, "'min_coverage' is 1.5, and must lie between 0 and 1."),
    (
        EVAL + "provider = 'antropic'",
        3,
        "'provider' is 'antropic', which is not a known provider; did you mean",
    ),
    (EVAL + "args = { a = [\n1,\nnan] }", 5, "'a' is nan, and must be a finite number."),
    (EVAL + f"seed = {2**64}", 3, f"'seed' is {2**64}, which is too large a number."),
    (
        EVAL + "api_key_var = 'sk-abc'",
        3,
        "'api_key_var' must be the name of an environment variable; the key",
    ),
    (EVAL + "resume = 3", 3, "'resume' must be true or the folder of a run, not 3."),
    (EVAL + "resume_path = ''", 3, "'resume_path' must be true or the folder of a run, not ''."),
    (EVAL + "verbose = 'yes'", 3, "'verbose' must be true or false, not 'yes'."),
    (EVAL + "listener = 'otel'", 3, "'listener' must be a list of texts, not 'otel'."),
    # Sweeps
    (ABLATION, 1, "this [[ablation]] sweeps nothing; add [ablation.sweep] with lists of values."),
    (ABLATION + "[ablation.sweep]", 3, "this [[ablation]] sweeps nothing;"),
    (ABLATION + "sweep = 3", 3, "this [[ablation]] sweeps nothing;"),
    (ABLATION + "sweep = { seed = 1 }", 3, "the sweep of 'seed' must be a list of values, not 1."),
    (ABLATION + "sweep = { seed = [] }", 3, "the sweep of 'seed' is an empty list; give it values."),
    (ABLATION + "[ablation.sweep]\nsede = [1]", 4, "unknown field 'sede'; did you mean 'seed'"),
    (ABLATION + "[ablation.sweep]\nseed = [\n1,\n'x']", 6, "'seed' must be a whole number, not 'x'."),
    (ABLATION + "[ablation.sweep]\nmax_tokens = [0]", 4, "'max_tokens' is 0, and must be at least 1."),
    (ABLATION + "[ablation.sweep.args]\na = 1", 4, "the sweep of 'a' must be a list of values, not 1."),
    (ABLATION + "[ablation.sweep.args]", 3, "the sweep of 'args' is empty; give its keys lists of values."),
    (ABLATION + "sweep = { args = 3 }", 3, "the sweep of 'args' must be a list of values, not 3."),
    (
        ABLATION + "sweep = { seed = { a = [1] } }",
        3,
        "the sweep of 'seed' must be a list of values, not a table.",
    ),
    (
        ABLATION + "args = { a = 1 }\n[ablation.sweep.env_args]\na = [1]",
        5,
        "'env_args.a' is swept here and fixed in line 3; keep one of them.",
    ),
    (
        ABLATION + "seed = 1\n[ablation.sweep]\nseed = [1]",
        5,
        "'seed' is swept here and fixed in line 3; keep",
    ),
    (
        ABLATION + "[ablation.sweep]\nid = ['f']",
        4,
        "'env_id' is swept here and fixed in line 2; keep one of them.",
    ),
    (
        ABLATION + "[ablation.sweep]\nargs = {a = [1]}\nenv_args = {a = [2]}",
        4,
        "'env_args.a' is swept already",
    ),
    (
        ABLATION + "[ablation.sweep]\nargs = [{}]\nenv_args = {a = [2]}",
        5,
        "'env_args.a' is swept already, in line 4",
    ),
    (ABLATION + "[ablation.sweep]\nname = ['x']", 4, "'name' cannot be swept; every combination is labelled"),
    (
        ABLATION + "[ablation.sweep]\nlabel = ['x']",
        4,
        "'label' cannot be swept; every combination is labelled",
    ),
    (
        ABLATION + "[ablation.sweep]\nheader = [['X: 1']]",
        4,
        "'header' cannot be swept; sweep the table 'headers'",
    ),
    (ABLATION + "[ablation.sweep]\nheaders = { X = [1] }", 4, "'X' must be a text, not 1."),
    (
        ABLATION + "[ablation.sweep]\nverbose = [true]",
        4,
        "'verbose' cannot be swept, because it is not part of",
    ),
    (ABLATION + "[ablation.sweep]\nresume = [true]", 4, "'resume' cannot be swept"),
    (ABLATION + "[ablation.sweep]\ntaskset = ['x']", 4, "Proctor has no separate tasksets"),
    (
        ABLATION + "model = 'm'\nsweep = { endpoint_id = ['x'] }",
        1,
        "'endpoint_id' and 'model' exclude each other;",
    ),
    (
        "sampling_args = { temperature = 1 }\n" + ABLATION + "sweep = { temperature = [0.5] }",
        4,
        "'temperature' is swept here, but sampling_args fixes it, and wins; take",
    ),
    (
        ABLATION + "[ablation.sweep.args]\n" + "".join(f"{key} = {[*range(22)]}\n" for key in "abc"),
        3,
        "this sweep has 10,648 combinations, more than 10,000.",
    ),
]


@pytest.mark.parametrize(
    ("text", "line", "sentence"), MISTAKES, ids=[sentence for _, _, sentence in MISTAKES]
)
def test_a_mistake_is_told_with_its_line(written: Written, text: str, line: int, sentence: str) -> None:
    (problem,) = problems(written("s.toml", text))

    assert problem.startswith(f"s.toml:{line}: {sentence}")
    assert re.search(r"[.?]$", problem), "it is a sentence"


def test_all_mistakes_of_a_file_are_told_together_by_line(written: Written) -> None:
    path = written(
        "s.toml",
        """
num_example = 5
[[ablation]]
[ablation.sweep]
temperature = [-1, 'x']
[eval]
""",
    )

    assert [problem.split(" ")[0] for problem in problems(path)] == [
        "s.toml:2:",
        "s.toml:3:",
        "s.toml:5:",
        "s.toml:5:",
        "s.toml:6:",
    ]


# Beside a suite


def test_flags_that_a_suite_does_not_heed_are_named(written: Written) -> None:
    suite = read_suite(
        written("s.toml", 'num_examples = 7\n[[eval]]\nid = "a"\n[[eval]]\nid = "b"\nseed = 3\n')
    )

    given = {"env_id": "s.toml", "num_examples": 7, "seed": 3, "temperature": 0.5, "save_results": True}

    assert ignored_flags(given, suite) == ["--seed", "--temperature"]


def test_several_environments_are_separated_by_commas(written: Written) -> None:
    written("odd,name.py", "")

    def ids(words: str) -> list[str]:
        return [entry.given["env_id"] for entry in parse_environments({"env_id": words, "model": "m"})]

    assert ids("gsm8k,alphabet-sort") == ["gsm8k", "alphabet-sort"]
    assert ids(" gsm8k , ") == ["gsm8k"]
    assert ids("odd,name.py") == ["odd,name.py"]
    assert parse_environments({"env_id": "a,a"})[1].given["label"] == "#2"
    with pytest.raises(ConfigError, match="' , ' names no environment"):
        ids(" , ")


def test_a_dry_run_can_tell_where_each_value_stands(written: Written) -> None:
    (entry,) = read_suite(written("s.toml", 'model = "m"\n[[eval]]\nid = "e"\n')).entries

    _, origins = resolve(entry.given, {"num_examples": 9, "model": "other"}, "its package", entry.origins)

    assert origins == {
        "num_examples": "its package",
        "model": "s.toml:1",
        "env_id": "s.toml:3",
        "save_results": "default of the suite s.toml",
    }


def test_an_entry_of_the_command_line_came_from_flags() -> None:
    (entry,) = parse_environments({"env_id": "e", "seed": 1})

    assert entry == SuiteEntry(given={"env_id": "e", "seed": 1})
    assert resolve(entry.given, {}, origins=entry.origins)[1] == {"env_id": "flag", "seed": "flag"}


def test_a_value_that_means_nothing_says_where_it_stands() -> None:
    with pytest.raises(ConfigError, match=r"max_retries \(from \[tool.x\]\) is -1, and must be at least 0"):
        resolve({"env_id": "e"}, {"max_retries": -1}, "[tool.x]")
    with pytest.raises(
        ConfigError, match=r"Invalid headers_from_state \(from \[tool.x\]\): Expected `object`"
    ):
        resolve({"env_id": "e"}, {"headers_from_state": "X: y"}, "[tool.x]")
    with pytest.raises(ConfigError, match=r"--num-examples is 0; .* --timeout is nan, and"):
        resolve({"env_id": "e", "timeout": float("nan"), "num_examples": 0}, {})


# The documentation


def toml_blocks(page: str) -> list[str]:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"^```toml\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_suite_in_the_docs_can_be_read(written: Written) -> None:
    (text,) = toml_blocks("suites.md")

    assert len(read_suite(written("s.toml", text)).entries) == 2 + 3 * 2


def test_the_registry_in_the_docs_can_be_read(written: Written) -> None:
    (text,) = toml_blocks("endpoints.md")

    (endpoint,) = read_registry(written("e.toml", text)).endpoints.values()
    assert endpoint.price is not None
    assert (endpoint.max_concurrent, endpoint.tokens_per_minute) == (64, 1e6)


def test_the_providers_in_the_docs_are_those_there_are() -> None:
    text = (ROOT / "docs" / "endpoints.md").read_text(encoding="utf-8")

    for provider in PROVIDERS.values():
        row = f"| `{provider.name}` | `{provider.url}` | `{'`, `'.join(provider.key_vars)}`"
        (line,) = [line for line in text.splitlines() if line.startswith(row)]
        assert line.endswith(f"| `{provider.client_type}` |")


def test_the_mistakes_shown_in_the_docs_are_worded_as_they_are_told(written: Written) -> None:
    path = written(
        "configs/eval/benchmark.toml",
        "\n\nnum_example = 5\n\n\n\n[[ablation]]\nenv_id = 'e'\nsweep = { temperature = [-1] }\n"
        "\n\n\n\n[eval]\n",
    )
    page = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")

    assert re.findall(r"^Error: (.*)$", page, re.MULTILINE) == problems(path)
