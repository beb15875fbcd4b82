"""Documentation runs: code blocks, commands, tables."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import get_args

import pytest

import proctor as package
from proctor.api.runs import CauseCode
from tests.ports import free_port
from tests.server.workplace import Person, workplace

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
LINKING = [*PAGES, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"))]


SERVER = "## A server of your own"


def blocks(page: Path, language: str) -> list[str]:
    return blocks_of(page.read_text(encoding="utf-8"), language)


def blocks_of(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


PYTHON = [(page.name, number, code) for page in PAGES for number, code in enumerate(blocks(page, "python"))]


@pytest.mark.parametrize(
    ("page", "number", "code"), PYTHON, ids=[f"{name}-{number}" for name, number, _ in PYTHON]
)
def test_every_python_block_in_the_docs_runs(page: str, number: int, code: str, tmp_path: Path) -> None:
    script = tmp_path / "block.py"
    script.write_text(code, encoding="utf-8")

    done = subprocess.run(
        [sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )

    assert done.returncode == 0, done.stderr


def test_the_tour_of_the_readme_works_word_for_word(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition(SERVER)[0]
    (tmp_path / "sums.py").write_text(blocks(ROOT / "README.md", "python")[0], encoding="utf-8")
    (tmp_path / "letters.py").write_text(blocks(ROOT / "README.md", "python")[1], encoding="utf-8")
    (tmp_path / "repairs.py").write_text(blocks(ROOT / "README.md", "python")[2], encoding="utf-8")
    (tmp_path / "suite.toml").write_text(blocks(ROOT / "README.md", "toml")[0], encoding="utf-8")
    words_of_ours = ("proctor e", "proctor j", "proctor t", "printf")
    commands = [line for line in readme.splitlines() if line.startswith(words_of_ours)]
    elsewhere = ("openai/", "localhost", "anthropic", "claude")
    offline = [line for line in commands if not any(word in line for word in elsewhere)]
    small = [line.replace("-n 81 -r 3", "-n 4 -r 1").replace("-n 10 -r 3", "-n 3 -r 2") for line in offline]
    assert len(small) == 14

    codes = []
    for line in small:
        words = re.sub("^proctor ", f"{sys.executable} -m proctor ", line)
        done = subprocess.run(
            words, shell=True, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
        )
        codes.append(done.returncode)
        assert "Traceback" not in done.stderr

    sandboxed = [0, 0, 0] if shutil.which("bwrap") else [0, 2, 0]
    assert codes == [0, 0, 0, 0, 0, 0, 0, *sandboxed, 0, 0, 0, 1]
    assert len(list(tmp_path.glob("outputs/evals/sums--local/*/results.jsonl"))) == 1 + 1
    assert len(list(tmp_path.glob("outputs/evals/sums--local--temperature=*/*/results.jsonl"))) == 4


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="hosted runs need bubblewrap")
def test_five_commands_pasted_as_a_block_lead_from_nothing_to_a_hosted_run(tmp_path: Path) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition(SERVER)[2]
    block = next(each for each in blocks_of(readme, "") if "proctor server" in each)
    assert len(block.splitlines()) == 5
    port = str(free_port())
    person = Person(tmp_path, f"http://127.0.0.1:{port}")
    pasted = block.replace("--detach", f"--detach --port {port} --main-index none").replace("8700", port)
    pasted = pasted.replace("proctor ", f"{sys.executable} -m proctor ")

    try:
        done = subprocess.run(
            ["bash", "-c", pasted],
            cwd=tmp_path,
            env=person.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    finally:
        person("server", "stop")

    assert done.returncode == 0, done
    assert "10 of 10 rollouts scored" in done.stdout


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="hosted runs need bubblewrap")
def test_the_requests_of_the_page_on_the_api_work_word_for_word(tmp_path: Path) -> None:
    names, *requests = blocks(ROOT / "docs" / "api.md", "sh")
    with workplace(tmp_path / "w") as place:
        root = Person(tmp_path / "root", place.url)
        root.ok("login", place.url, stdin=place.token)
        root.write_environment("my-env")
        root.ok("env", "push", "my-env")
        words = names.replace("http://127.0.0.1:8700", place.url)
        words = words.replace("proctor token", f"{sys.executable} -m proctor token")
        done = subprocess.run(
            ["bash", "-euc", words + "\n".join(requests).replace("\ncurl", "\necho\ncurl")],
            cwd=root.home,
            env=root.environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    assert done.returncode == 0, done.stderr
    assert '"code":"not_found"' in done.stdout
    teams = [line for line in done.stdout.splitlines() if '"id":"team-' in line]
    assert len(teams) == 2
    assert len(set(teams)) == 1
    assert "event: end" in done.stdout
    assert done.stdout.count('"reward":') >= 5


def test_every_cause_of_a_run_that_did_not_finish_is_explained() -> None:
    page = (ROOT / "docs" / "hosted.md").read_text(encoding="utf-8")
    explained = re.findall(r"^\| `(\w+)` \|", page.partition("## Why a run did not finish")[2], re.MULTILINE)

    assert explained == list(get_args(CauseCode))


def test_tables_made_from_the_code_are_current() -> None:
    words = [sys.executable, str(ROOT / "docs" / "tables.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", LINKING, ids=[str(page.relative_to(ROOT)) for page in LINKING])
def test_links_lead_to_a_file_and_a_heading(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^)]+))?\)", text):
        file = page.parent / target if target else page
        assert file.exists(), f"{page.name} links to {target}"
        assert not anchor or anchor in anchors(file), f"{page.name} links to {target}#{anchor}"


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}

    assert pages <= set(re.findall(r"\]\(([\w-]+\.md)\)", index))


def test_the_design_page_shows_the_layers_that_are_enforced() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    section = page.partition("## Layers")[2].partition("\n## ")[0]
    [shown] = re.findall(r"^```\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

    [contract] = project["tool"]["importlinter"]["contracts"]
    assert shown.splitlines() == contract["layers"]


def test_the_design_page_explains_every_folder_and_module() -> None:
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    tree = page.partition("## The tree")[2].partition("\n## ")[0]
    source = ROOT / "src" / "proctor"
    folders = {f"{each.parent.name}/" for each in source.glob("*/__init__.py")}
    modules = {each.name for each in source.glob("*.py") if not each.name.startswith("__")}

    assert set(re.findall(r"^\| `(\w+/)` \|", tree, re.MULTILINE)) == folders
    rows = re.findall(r"^\| (`\w+\.py`.*?) \|", tree, re.MULTILINE)
    assert set(re.findall(r"`(\w+\.py)`", " ".join(rows))) == modules


def test_everything_the_package_offers_can_be_imported() -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_the_changelog_knows_the_version() -> None:
    assert f"## {package.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
