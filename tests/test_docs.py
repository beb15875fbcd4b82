"""Documentation runs: code blocks, commands, tables."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import proctor as package

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(
        rf"^```{language}\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )


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
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
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


def test_tables_made_from_the_code_are_current() -> None:
    words = [sys.executable, str(ROOT / "docs" / "tables.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stderr


def test_links_between_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_everything_the_package_offers_can_be_imported() -> None:
    for name in package.__all__:
        assert getattr(package, name) is not None


def test_the_changelog_knows_the_version() -> None:
    assert f"## {package.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
