from __future__ import annotations

from pathlib import Path

import pytest

from proctor.config.experiment import Evaluation, Experiment, Recipe, is_recipe, read_recipe
from proctor.config.toml_file import read_toml
from proctor.errors import FileError

SEED_SAMPLE = """\
[experiment]
rollout = "my-rollout"                  # Rollout directory name (under rollouts/)
entrypoint = "main.py"                  # Entrypoint file name
model_path = "openai/gpt-5-mini"        # LiteLLM-style model name
dataset = "my-dataset"                  # Platform dataset name
# commit_sha = "abc123..."              # Optional: pin to a specific synced commit

[evaluation]
# Optional. Omit values to use platform defaults.
# limit = 200                           # First N rows; omit for random 10% sample
# n = 1                                 # Evaluation attempts per row
# batch_size = 1                        # Rows evaluated per batch
# pass_threshold = 1.0                  # Minimum passing score
# agent_workflow_timeout_s = 450        # Agent workflow timeout per row
# grader_timeout_s = 150                # Grader timeout per row
"""
EXPERIMENT = SEED_SAMPLE.partition("[evaluation]")[0]


def write(folder: Path, text: str) -> Path:
    path = folder / "my.toml"
    path.write_text(text)
    return path


def read(folder: Path, text: str) -> Recipe:
    return read_recipe(write(folder, text)).recipe


def problems_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(FileError) as raised:
        read(folder, text)
    return [problem.removeprefix(f"{folder}/") for problem in raised.value.problems]


def test_the_sample_of_the_documentation_is_a_recipe_with_defaults(tmp_path: Path) -> None:
    recipe = read(tmp_path, SEED_SAMPLE)

    assert recipe.experiment == Experiment(
        rollout="my-rollout", entrypoint="main.py", model_path="openai/gpt-5-mini", dataset="my-dataset"
    )
    assert recipe.evaluation == Evaluation()
    assert (recipe.evaluation.agent_workflow_timeout_s, recipe.evaluation.grader_timeout_s) == (450, 150)


def test_the_commented_fields_of_the_sample_are_the_defaults(tmp_path: Path) -> None:
    uncommented = SEED_SAMPLE.replace("# n =", "n =").replace("# batch", "batch").replace("# pass", "pass")
    uncommented = uncommented.replace("# agent_", "agent_").replace("# grader_", "grader_")

    assert read(tmp_path, uncommented) == read(tmp_path, SEED_SAMPLE)


def test_every_problem_is_reported_at_once_with_its_line(tmp_path: Path) -> None:
    text = """\
[experiment]
rollout = "../other"
entrypoint = "/etc/main.py"
model = "openai/gpt-5-mini"
dataset = "a b"
branch = "main"
commit_sha = "xyz"
[evaluaton]
[evaluation]
limit = -5
n = "x"
batch_size = 0
pass_threshold = nan
grader_timeout_s = 0
[env]
lower = "x"
PROCTOR_X = "y"
PORT = 80
[secrets]
required = ["KEY", "KEY", "PORT", "sk-1234567890abcdef"]
[advanced]
num_examples = 5
temprature = 1
agent = "claude"
"""

    assert problems_of(tmp_path, text) == [
        "my.toml:1: [experiment] has no 'model_path'.",
        "my.toml:2: 'rollout' is '../other', and must be the name of a folder in rollouts/, without slashes.",
        "my.toml:3: 'entrypoint' is '/etc/main.py', and must be a file inside the rollout's folder.",
        "my.toml:4: [experiment] has no field 'model'; did you mean 'model_path'?",
        "my.toml:5: 'dataset' is 'a b', and must be a name, or 'owner/name@hash' on a server.",
        "my.toml:7: 'branch' and 'commit_sha' exclude each other; a commit is on its branch already.",
        "my.toml:7: 'commit_sha' is 'xyz', and must be 7 to 40 hexadecimal digits.",
        "my.toml:8: unknown section [evaluaton]; did you mean 'evaluation'?",
        "my.toml:10: 'limit' is -5, and must be at least 1.",
        "my.toml:11: 'n' must be a whole number, not 'x'.",
        "my.toml:12: 'batch_size' is 0, and must be at least 1.",
        "my.toml:13: 'pass_threshold' is nan, and must be a finite number.",
        "my.toml:14: 'grader_timeout_s' is 0, and must be more than 0 seconds.",
        "my.toml:16: 'lower' cannot be a variable; use capital letters, digits and '_'.",
        "my.toml:17: 'PROCTOR_X' is reserved; choose a name without that prefix.",
        "my.toml:18: 'PORT' must be a text, not 80; write it in quotation marks.",
        "my.toml:20: 'KEY' is required twice.",
        "my.toml:20: 'PORT' is in [env] too; a secret does not belong into a file.",
        "my.toml:20: 'required' must hold names of variables, in capital letters; no values.",
        "my.toml:22: 'num_examples' is 'limit' in [evaluation].",
        "my.toml:23: unknown field 'temprature'; did you mean 'temperature'?",
        "my.toml:24: 'agent' has no meaning for a rollout; leave it out.",
    ]


@pytest.mark.parametrize("limit", ["true", "1.5", '"every"', "[1]"])
def test_a_limit_is_a_number_or_all(tmp_path: Path, limit: str) -> None:
    (problem,) = problems_of(tmp_path, f"{EXPERIMENT}[evaluation]\nlimit = {limit}\n")

    assert "'limit' must be a number of rows or \"all\"" in problem


def test_a_secret_put_under_secrets_is_refused_and_not_repeated(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, f'{EXPERIMENT}[secrets]\nOPENAI_API_KEY = "sk-abc"\n')

    assert "sk-abc" not in problem
    assert "no values" in problem


def test_everything_that_can_be_said_is_read(tmp_path: Path) -> None:
    recipe = read(
        tmp_path,
        f'{EXPERIMENT}commit_sha = "abcdef1"\n[evaluation]\nlimit = "all"\nn = 2\n'
        f'[env]\nMODE = "fast"\n[secrets]\nrequired = ["API_KEY"]\n[advanced]\ntemperature = 0.5\n',
    )

    assert recipe.experiment.commit_sha == "abcdef1"
    assert (recipe.evaluation.limit, recipe.evaluation.n) == ("all", 2)
    assert (recipe.env, recipe.secrets, recipe.advanced) == (
        {"MODE": "fast"},
        ("API_KEY",),
        {"temperature": 0.5},
    )


def test_the_hash_of_a_recipe_follows_what_is_evaluated_and_not_the_commit(tmp_path: Path) -> None:
    recipe = read(tmp_path, EXPERIMENT)

    assert read(tmp_path, f"# a comment\n{SEED_SAMPLE}").hash == recipe.hash
    assert read(tmp_path, f'{EXPERIMENT}commit_sha = "abcdef1"\n').hash == recipe.hash
    assert read(tmp_path, f"{EXPERIMENT}[evaluation]\nn = 2\n").hash != recipe.hash


def test_a_recipe_is_told_from_a_suite(tmp_path: Path) -> None:
    assert is_recipe(read_toml(write(tmp_path, SEED_SAMPLE)))
    assert is_recipe(read_toml(write(tmp_path, "[evaluation]\nn = 1\n")))
    assert not is_recipe(read_toml(write(tmp_path, '[[eval]]\nenv_id = "echo"\n')))
