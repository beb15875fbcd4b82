"""Nobody can push a package that would be installed in the place of one of the operator's main index."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from proctor.server.hub import main_index
from proctor.server.hub.main_index import MainIndex, default_index, indexes_of_pip
from proctor.server.problems import ForbiddenError
from tests.runner.indexes import package_index
from tests.runner.wheels import make_wheel
from tests.server.hub.packages import made, push
from tests.server.serving import serving, settings_in


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    make_wheel(folder, "idna", {"idna.py": ""}, version="3.10")
    return folder


@pytest.fixture(autouse=True)
def no_other_index(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def test_a_name_that_the_main_index_has_is_refused_and_others_are_taken(
    packages: Path, tmp_path: Path
) -> None:
    with (
        package_index(packages, private=True) as index,
        serving(settings_in(tmp_path, main_index=index.url)) as served,
    ):
        ada = served.user("ada")
        evil = push(ada, made(tmp_path / "a", name="idna", version="999.0"), visibility="public")
        honest = push(ada, made(tmp_path / "b", name="greet"))

        assert (evil.status, evil.code) == (403, "name_on_main_index")
        assert "choose another name" in evil.body["message"]
        assert served.nobody("GET", "/simple/ada/idna/").status == 401  # as for all that is not there
        assert honest.status == 201
        asked = len(index.asked)
        assert push(ada, made(tmp_path / "c", name="greet", version="0.2.0")).status == 201
        assert len(index.asked) == asked  # what is here already is not asked about again


def test_an_operator_can_allow_a_name(packages: Path, tmp_path: Path) -> None:
    with package_index(packages) as index:
        settings = settings_in(tmp_path, main_index=index.url, allowed_names=("idna",))
        with serving(settings) as served:
            assert push(served.user("ada"), made(tmp_path, name="idna", version="999.0")).status == 201


def test_where_the_main_index_does_not_answer_a_new_name_waits(
    packages: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main_index, "LOOKUP_SECONDS", 3.0)
    with (
        package_index(packages, silent=True) as index,
        serving(settings_in(tmp_path, main_index=index.url)) as served,
    ):
        answer = push(served.user("ada"), made(tmp_path))

    assert (answer.status, answer.code) == (503, "main_index_unavailable")
    assert "push again later" in answer.body["message"]


def test_where_pips_own_index_cannot_be_reached_names_are_taken_with_a_warning(
    packages: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with package_index(packages) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
    asyncio.run(MainIndex("pip").check("idna"))
    assert "on the main index" in caplog.text


def test_the_indexes_of_pip_are_all_asked(packages: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (packages / "simple" / "other").mkdir(parents=True)
    with package_index(packages) as index:
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file://{packages}/simple")
        pip = MainIndex("pip")
        for name in ("idna", "other"):
            with pytest.raises(ForbiddenError):
                asyncio.run(pip.check(name))
        asyncio.run(pip.check("greet"))


def test_without_settings_pip_means_the_public_index() -> None:
    assert indexes_of_pip({}) == (default_index(),)
    assert default_index().startswith("https://")
    assert indexes_of_pip({"no-index": "1"}) == ()
