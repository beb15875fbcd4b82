"""`proctor dataset` as a user types it, against a real server."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from proctor.cli.app import run as run_proctor
from tests.conftest import Ran
from tests.server.datasets.pushing import OTHER_ROWS, ROWS, push_rows, sha256_of
from tests.server.serving import Api, Served

As = Callable[..., Ran]
SHORT = sha256_of(ROWS)[:12]


@pytest.fixture
def as_user(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Api], As]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PROCTOR_API_URL", served.url)

    def commands(api: Api) -> As:
        def run(*words: str) -> Ran:
            monkeypatch.setenv("PROCTOR_API_KEY", api.token)
            capsys.readouterr()
            with pytest.raises(SystemExit) as left:
                run_proctor(["dataset", *words])
            shown = capsys.readouterr()
            return Ran(int(left.value.code or 0), shown.out, shown.err, tmp_path)

        return run

    return commands


@pytest.fixture
def ada(served: Served, as_user: Callable[[Api], As]) -> As:
    return as_user(served.user("ada"))


def test_a_file_is_pushed_looked_at_pulled_and_deleted(ada: As, tmp_path: Path) -> None:
    (tmp_path / "sums.jsonl").write_bytes(ROWS)

    pushed = ada("push", "sums.jsonl", "--description", "Small sums.")
    again = ada("push", "sums.jsonl")

    assert pushed.code == again.code == 0, pushed.stderr
    assert f"Pushed ada/sums@{SHORT} (private, 2 rows, 88 bytes)." in pushed.stdout
    assert f'dataset = "ada/sums@{SHORT}"' in pushed.stdout
    assert "had exactly this content already" in again.stdout
    (tmp_path / "sums.jsonl").unlink()

    assert "Small sums." in ada("list").stdout
    info = ada("info", "sums").stdout
    assert sha256_of(ROWS) in info
    assert "user_prompt, ground_truth" in info
    assert [
        row["values"]["ground_truth"] for row in json.loads(ada("preview", "sums", "--json").stdout)["items"]
    ] == [
        "2",
        "4",
    ]
    assert "is valid: 2 rows with prompts" in ada("validate", "ada/sums").stdout

    pulled = ada("pull", "sums", "-o", "data/back.jsonl")
    assert f"Wrote ada/sums@{SHORT} to data/back.jsonl" in pulled.stdout
    back = tmp_path / "data/back.jsonl"
    assert back.read_bytes() == ROWS
    assert stat.S_IMODE(back.stat().st_mode) == 0o644

    assert ada("delete", "ada/sums").code == 2  # no terminal to confirm on
    assert ada("delete", "ada/sums", "--yes").code == 0
    assert ada("info", "ada/sums").code == 2


def test_a_pull_never_overwrites_another_file_unless_asked_to(ada: As, tmp_path: Path) -> None:
    (tmp_path / "sums.jsonl").write_bytes(ROWS)
    ada("push", "sums.jsonl")
    assert ada("pull", "ada/sums").code == 0  # the same content
    (tmp_path / "sums.jsonl").write_bytes(OTHER_ROWS)

    refused = ada("pull", "ada/sums")

    assert (refused.code, "already exists; name another file with -o" in refused.stderr) == (2, True)
    assert (tmp_path / "sums.jsonl").read_bytes() == OTHER_ROWS
    assert ada("pull", "ada/sums", "--overwrite").code == 0
    assert (tmp_path / "sums.jsonl").read_bytes() == ROWS
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_file_that_cannot_be_read_is_not_pushed_and_every_line_is_named(ada: As, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_bytes(ROWS + b"\xff\xfe\n" + b'{"user_prompt": "caf\xe9"}\n')

    refused = ada("push", "bad.jsonl")

    assert refused.code == 2
    assert "bad.jsonl:3:" in refused.stderr
    assert "bad.jsonl:4:" in refused.stderr
    assert ada("list", "--json").stdout.count('"owner"') == 0
    assert ada("push", "bad.jsonl", "--no-validate").code == 0


def test_rows_without_prompts_can_be_pushed_for_environments_but_are_not_valid_for_recipes(
    ada: As, tmp_path: Path
) -> None:
    (tmp_path / "plain.csv").write_text("question,answer\n1+1,2\n")

    assert ada("push", "plain.csv").code == 0
    checked = ada("validate", "plain.csv")

    assert (checked.code, "this row has no 'user_prompt'" in checked.stderr) == (1, True)


def test_the_preview_of_a_large_file_reads_only_its_beginning_and_shows_no_row_that_is_cut(
    ada: As, tmp_path: Path
) -> None:
    row = '"' + "line\n" * 60_000 + '",x\n'  # 300 KB, over many lines
    (tmp_path / "big.csv").write_text("user_prompt,label\n" + row * 5)
    ada("push", "big.csv")
    (tmp_path / "big.csv").unlink()

    shown = json.loads(ada("preview", "ada/big", "--json").stdout)["items"]

    assert [each["index"] for each in shown] == [0, 1, 2]
    assert not (tmp_path / "cache/proctor/datasets").exists()


def test_parquet_goes_through_the_server_as_it_is(ada: As, tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"user_prompt": ["1+1", "2+2"], "label": ["2", "4"]})
    parquet.write_table(table, tmp_path / "sums.parquet")
    ada("push", "sums.parquet")
    (tmp_path / "sums.parquet").unlink()

    assert '"2+2"' in ada("preview", "ada/sums", "--json").stdout
    assert ada("validate", "ada/sums").code == 0


def test_a_team_in_the_options_owns_what_is_pushed_and_strangers_get_one_answer(
    served: Served, as_user: Callable[[Api], As], tmp_path: Path
) -> None:
    ada, eve = served.user("ada"), served.user("eve")
    ada.post("/teams", {"name": "robots"})
    (tmp_path / "sums.jsonl").write_bytes(ROWS)

    assert "robots/sums@" in as_user(ada)("push", "sums.jsonl", "--team", "robots").stdout
    (tmp_path / "sums.jsonl").unlink()
    assert SHORT in as_user(ada)("info", "sums").stdout

    assert push_rows(eve, "robots", "sums", ROWS).status == 403
    secret, missing = (as_user(eve)("pull", f"robots/{name}").stderr for name in ("sums", "none"))
    assert secret.replace("sums", "none") == missing
