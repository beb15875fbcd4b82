"""Tasksets: read, narrowed down, written back and run; and files of tasks on the command line."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from proctor.errors import ConfigError, FileError, OverloadedError, UnknownNameError
from proctor.evaluation.taskset import Taskset
from proctor.models.scripted import Scripted
from proctor.packages.loading import find_environment, load
from proctor.packages.task_files import TaskListEnvironment
from proctor.rollout import Score
from proctor.task import Task, default_slug

pytestmark = pytest.mark.usefixtures("home")

ENV = """
from proctor import Environment, exact

env = Environment({name!r}, version="1.2.3")


@env.template()
async def say(word: str, times: int = 1):
    answer = yield f"Say {{word}}"
    yield exact(answer, " ".join([word] * times))
"""

TASKS = """
from env import say

tasks = [say(word="pear"), say(word="plum", times=2), say(word="fig").with_slug("fig")]
"""


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def words(home: Path) -> Path:
    """A folder with an environment and its tasks."""
    write(home / "words/env.py", ENV.format(name="words"))
    write(home / "words/tasks.py", TASKS)
    return home / "words"


def slugs(taskset: Any) -> list[str]:
    return [task.slug for task in taskset]


def loaded(path: Path | str) -> list[Task]:
    return list(load(find_environment(str(path)), {}).tasks())


# Python files


def test_a_file_offers_the_tasks_it_calls_so(words: Path) -> None:
    taskset = Taskset.from_file(words / "tasks.py")

    assert len(taskset) == 3
    assert [task.args for task in taskset][1] == {"word": "plum", "times": 2}
    assert slugs(taskset)[2] == "fig"
    assert slugs(loaded(words / "tasks.py")) == slugs(taskset)


@pytest.mark.parametrize(
    "offer",
    [
        "from proctor import Taskset\nmine = Taskset('mine', [say('a'), say('b')])",
        "first = [say('a')]\nsecond = (say('b'),)",
        "one = say('a')\nanother = say('b')\nboth = [one, another]",
        "tasks = [say('a'), say('b')]\nhidden = [say('c')]",
    ],
)
def test_a_file_without_that_name_offers_every_task_in_it_once(words: Path, offer: str) -> None:
    file = write(words / "others.py", f"from env import say\n{offer}")

    assert [task.args["word"] for task in Taskset.from_file(file)] == ["a", "b"]


def test_a_folder_offers_its_tasks_file_or_else_all_its_files(words: Path) -> None:
    assert slugs(Taskset.from_file(words)) == slugs(Taskset.from_file(words / "tasks.py"))
    assert slugs(loaded(words)) == slugs(Taskset.from_file(words))

    (words / "tasks.py").rename(words / "some.py")
    write(words / "more.py", "from env import say\nmore = [say('more')]")
    write(words / "test_it.py", "raise SystemExit")
    assert [task.args["word"] for task in Taskset.from_file(words)] == ["more", "pear", "plum", "fig"]


def test_two_folders_may_each_have_an_env_file(words: Path, home: Path) -> None:
    write(home / "others/env.py", ENV.format(name="others"))
    write(home / "others/tasks.py", TASKS)

    first, second = Taskset.from_file(words / "tasks.py"), Taskset.from_file(home / "others/tasks.py")

    assert {task.env for task in first} == {"words"}
    assert {task.env for task in second} == {"others"}


# Rows


def rows(*written: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in written)


def test_rows_name_their_environment_template_inputs_and_slug(words: Path) -> None:
    file = write(
        words / "rows.jsonl",
        rows(
            {"env": "words", "template": "say", "args": {"word": "pear"}, "slug": "easy"},
            {"env": {"name": "words"}, "id": "say", "args": {"word": "plum"}, "difficulty": 3},
            {"env": "words", "task": "say", "args": '{"word": "fig"}'},
        ),
    )
    taskset = Taskset.from_file(file)

    assert [task.args["word"] for task in taskset] == ["pear", "plum", "fig"]
    assert taskset["easy"] is taskset[0]
    assert taskset[1].columns == {"difficulty": 3}
    assert taskset[2].slug == default_slug("say", {"word": "fig"}) == "say-7d42f337"
    assert slugs(loaded(file)) == slugs(taskset)


@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".parquet"])
def test_what_is_written_is_read_back(words: Path, suffix: str) -> None:
    taskset = Taskset.from_file(words / "tasks.py")

    again = Taskset.from_file(taskset.to_file(words / f"written{suffix}"))

    assert slugs(again) == slugs(taskset)
    assert [task.hash for task in again] == [task.hash for task in taskset]
    assert slugs(loaded(words / f"written{suffix}")) == slugs(taskset)


def test_everything_that_is_wrong_with_a_file_of_rows_is_told_by_line(words: Path) -> None:
    file = write(
        words / "rows.jsonl",
        rows(
            {"env": "words", "template": "say", "args": {"word": "pear"}},
            {"template": "say"},
            {"env": "words"},
            {"env": "words", "template": "say", "args": 3},
            {"env": "words", "template": "say", "args": "{"},
            {"env": "words", "template": "say", "slug": 3},
            "say",
        ),
    )
    with pytest.raises(FileError) as refused:
        Taskset.from_file(file)

    told = refused.value.problems
    assert [problem.split(":")[1] for problem in told] == ["2", "3", "4", "5", "6", "7"]
    assert "`env` is missing" in told[0]
    assert "`template` is missing" in told[1]


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("rows.jsonl", "{", "rows.jsonl:1: not valid JSON"),
        ("rows.jsonl", "", "has no tasks"),
        ("rows.json", "3", "must be a list of tasks"),
        ("rows.parquet", "no parquet", "cannot be read"),
        ("rows.txt", "x", "is not a file of tasks"),
        ("empty.py", "", "has no load_environment() function and no tasks"),
        ("empty.py", "from env import env", "has templates but no tasks; mint some, as in tasks = [say(…)]"),
        ("mixed.py", "from env import say\ntasks = [say(word='a'), 3]", "tasks[1] in"),
        ("broken.py", "1 / 0", "ZeroDivisionError"),
        ("leaving.py", "import sys\nsys.exit(3)", "SystemExit: 3"),
        ("typo.py", "\ndef (", "typo.py:2)"),
        (
            "rows.jsonl",
            rows({"env": "wrods", "template": "say"}),
            "which is neither in 'rows', in env.py beside it, nor installed; did you mean 'words'?",
        ),
        ("rows.jsonl", rows({"env": "echo", "template": "say"}), "'echo' has no templates"),
        (
            "rows.jsonl",
            rows({"env": "words", "template": "sya", "slug": "x"}),
            "Task 'x': 'words' has no template 'sya'; did you mean 'say'?",
        ),
        (
            "rows.jsonl",
            rows({"env": "words", "template": "say", "args": {"word": "a", "times": "b"}, "slug": "x"}),
            "Task 'x': `times` of `say` is wrong",
        ),
        (
            "rows.jsonl",
            rows(*[{"env": "words", "template": "say", "args": {"word": "a"}}] * 2),
            "have the slug",
        ),
    ],
)
def test_what_cannot_be_run_is_told_in_a_sentence(words: Path, name: str, content: str, said: str) -> None:
    file = write(words / name, content)

    with pytest.raises(ConfigError) as refused:
        Taskset.from_file(file).build_environment()

    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_an_installed_environment_is_found_by_its_name(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(home / "site/far_away.py", ENV.format(name="far-away"))
    monkeypatch.syspath_prepend(str(home / "site"))
    file = write(home / "rows.jsonl", rows({"env": "far-away", "template": "say", "args": {"word": "pear"}}))

    assert [task.env for task in loaded(file)] == ["far-away"]


def test_a_file_of_tasks_takes_no_arguments(words: Path) -> None:
    with pytest.raises(ConfigError, match="takes no arguments; leave out -a"):
        load(find_environment(str(words / "tasks.py")), {"difficulty": 3})


# Sets


def test_tasks_are_taken_by_place_slice_slug_or_any_test(words: Path) -> None:
    taskset = Taskset.from_file(words)

    assert taskset[0].args["word"] == "pear"
    assert taskset["fig"].args["word"] == taskset.by_slug("fig").args["word"] == "fig"
    assert slugs(taskset[1:]) == slugs(taskset)[1:]
    assert slugs(taskset.filter(lambda task: task.args.get("times", 1) > 1)) == [slugs(taskset)[1]]
    assert slugs(taskset.exclude("fig")) == slugs(taskset)[:2]
    assert taskset[1:].build_environment().tasks() == list(taskset)[1:]
    for wrong in (lambda: taskset["fgi"], lambda: taskset.exclude("fgi")):
        with pytest.raises(UnknownNameError, match="has no task 'fgi'; did you mean 'fig'"):
            wrong()


def test_two_tasks_of_one_slug_are_refused() -> None:
    with pytest.raises(ConfigError, match="Two tasks of 'mine' have the slug 'a'"):
        Taskset("mine", [Task(id="a"), Task(id="a")])


def test_a_task_of_no_template_cannot_be_written_down(home: Path) -> None:
    with pytest.raises(ConfigError, match="not made from a template"):
        Taskset("mine", [Task(id="a")]).to_file(home / "x.json")
    with pytest.raises(ConfigError, match="not to"):
        Taskset("mine", []).to_file(home / "x.csv")


# Running


def test_a_job_tells_the_mean_of_what_was_scored_and_errors_are_no_zeros(words: Path) -> None:
    model = Scripted({"pear": "pear", "plum": "no", "fig": OverloadedError("503")})

    job = asyncio.run(Taskset.from_file(words).run(model=model, group=2))

    assert job.reward == 0.5
    assert len(job) == 6
    assert [rollout.task.slug for rollout in job.errors] == ["fig", "fig"]
    assert list(job.results) == slugs(Taskset.from_file(words))
    assert [rollout.score and rollout.score.reward for rollout in job.results["fig"]] == [None, None]
    assert (job.result.folder / "results.jsonl").is_file()
    assert repr(job) == "Job('words', 6 rollouts, reward 0.5)"


def test_a_run_script_takes_its_agent_from_where_agents_are(words: Path) -> None:
    from proctor.agents import create_agent

    job = asyncio.run(Taskset.from_file(words)[:1].run(create_agent("tool_loop"), model=Scripted(["pear"])))

    assert job.reward == 1.0


def test_any_async_function_can_be_the_agent(words: Path) -> None:
    async def shouting(desk: Any) -> str:
        reply = await desk.ask()
        return str(reply.text).upper()

    job = asyncio.run(Taskset.from_file(words)[:1].run(shouting, model=Scripted(["pear"])))

    (rollout,) = job
    assert rollout.score == Score(1.0, {}, rollout.score.subscores if rollout.score else ())


@pytest.mark.parametrize("given", ["object", "path", "name"])
def test_the_environment_of_tasks_made_in_python_is_given(
    words: Path, given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(words))
    write(words / "words.py", ENV.format(name="words"))
    tasks = [Task(id="a", env="words", template="say", args={"word": "pear"})]
    monkeypatch.delitem(sys.modules, "words", raising=False)  # another test's
    module = __import__("words")
    environment = {"object": module.env, "path": words / "env.py", "name": "words"}[given]

    job = asyncio.run(Taskset("mine", tasks).run(model=Scripted(["pear"]), environment=environment))

    assert job.reward == 1.0


def test_tasks_whose_environment_nobody_knows_are_refused() -> None:
    tasks = [Task(id="a", env="nowhere-to-be-found", template="say")]

    with pytest.raises(UnknownNameError, match="needs the environment 'nowhere-to-be-found'"):
        asyncio.run(Taskset("mine", tasks).run(model=Scripted()))
    with pytest.raises(ConfigError, match="is empty"):
        asyncio.run(Taskset("mine", []).run(model=Scripted()))
    with pytest.raises(ConfigError, match="no environment at"):
        asyncio.run(Taskset("mine", tasks).run(model=Scripted(), environment="gone.py"))


def test_tasks_of_several_environments_are_played_each_by_its_own(words: Path) -> None:
    write(words / "more.py", ENV.format(name="more").replace('"Say ', '"Please say '))
    both = write(words / "both.py", TASKS.replace("tasks = [", "import more\ntasks = [more.say(word='x'), "))

    taskset = Taskset.from_file(both)
    job = asyncio.run(taskset.run(model=Scripted()))
    asked = [rollout.trace.prompt[-1]["content"] for rollout in job]

    assert [task.env for task in taskset] == ["more", "words", "words", "words"]
    assert asked == ["Please say x", "Say pear", "Say plum", "Say fig"]
    placed = taskset.build_environment()
    assert isinstance(placed, TaskListEnvironment)
    assert placed.version == "1.2.3"
    assert placed.traits.wants_agent


# The command line


def scripted(home: Path, *steps: Any) -> list[str]:
    script = write(home / "script.jsonl", rows(*steps))
    return ["-m", "scripted", "-b", str(script), "--json"]


def test_a_file_of_tasks_is_run_by_its_path(words: Path, proctor: Callable[..., Any]) -> None:
    words_given = scripted(words, {"when": "pear", "text": "pear"}, {"when": "plum", "text": "no"})

    one = proctor("eval", "run", "words/tasks.py", *words_given)
    every = proctor("eval", "run", "words/tasks.py", "--all", "-s", *words_given)

    assert one.code == every.code == 0, one.stderr + every.stderr
    assert [row["reward"] for row in one.rows] == [1.0]
    found = {row["info"]["args"]["word"]: row["reward"] for row in every.rows}
    assert found == {"pear": 1.0, "plum": 0.0, "fig": 0.0}
    assert every.metadata["environment"]["version"] == "1.2.3"


def test_rows_are_run_by_worker_processes_too(words: Path, proctor: Callable[..., Any]) -> None:
    Taskset.from_file(words).to_file(words / "rows.jsonl")

    done = proctor("eval", "run", "words/rows.jsonl", "--all", "-w", "2", "-s", *scripted(words, "pear"))

    assert done.code == 0, done.stderr
    assert sorted(row["reward"] for row in done.rows) == [0.0, 0.0, 1.0]


def test_what_is_wrong_with_a_file_of_tasks_ends_with_exit_code_2(
    words: Path, proctor: Callable[..., Any]
) -> None:
    write(words / "empty.py", "from env import env")

    done = proctor("eval", "run", "words/empty.py", "-m", "scripted")

    assert done.code == 2
    assert "has templates but no tasks" in done.stderr
    assert "Traceback" not in done.stderr
