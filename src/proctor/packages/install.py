"""Install environments with the available installer: uv, or else the pip of this interpreter.

A word is a local environment, a file or folder, `owner/name` on a hub, or anything else pip takes. Of a
hub only the environment itself is taken, never its dependencies: those come from the usual index, so that
neither can offer something under the other's names. A token goes by a variable, never on a command line,
where every user of the machine could read it. Knows nothing of what is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote, urlsplit

import msgspec

from proctor.errors import ConfigError, InstallError
from proctor.packages.catalog import canonical_name, read_project_table
from proctor.packages.loading import is_task_folder, module_name

HUB_VARIABLE = "PROCTOR_HUB_URL"
INSTALL_SECONDS = 1800.0
LAST_LINES = 15

ON_A_HUB = re.compile(
    r"(?P<owner>[A-Za-z0-9][\w.-]*)/(?P<name>[A-Za-z0-9][\w.-]*)(?:@(?P<version>[\w.!+*-]+))?"
)
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?\s*(?:[<>=!~;@ ].*)?")

OTHER_INDEXES = ("INDEX_URL", "EXTRA_INDEX_URL", "FIND_LINKS", "INDEX", "DEFAULT_INDEX", "NO_INDEX")
"""Settings that make pip and uv search other indexes too."""

Installer = tuple[str, ...]


class Hub(msgspec.Struct, frozen=True):
    """Where published environments come from, and the token to use there."""

    url: str
    token: str = ""


class InstallerCommand(msgspec.Struct, frozen=True):
    """One call of the installer."""

    words: tuple[str, ...]
    sealed: bool = False
    """Use only the indexes in the words and variables, whatever this machine's configuration says."""
    variables: Mapping[str, str] = {}
    """Never print these: they may hold a token."""


class InstallTarget(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to install."""

    what: str
    """As it was given."""
    words: tuple[str, ...]
    """For the installer."""
    name: str | None = None
    """Of the package, where it is known beforehand."""
    path: Path | None = None
    """The folder that is linked rather than copied."""
    index: str | None = None
    """The only index it may come from."""
    token: str = ""
    """To be shown there."""


def resolve_target(what: str, env_dir: str, hub: Hub | None) -> InstallTarget:
    """Resolve a word where a user would look: here first, then elsewhere."""
    if what.startswith("-"):
        raise ConfigError(f"{what!r} is not an environment; give a name, a folder, a file or a requirement.")
    folder = local_folder(what, env_dir)
    if folder is not None:
        return local_target(what, folder)
    if what.endswith((".whl", ".tar.gz", ".zip")) and "://" not in what:
        return file_target(what)
    if looks_like_a_path(what):
        raise ConfigError(f"There is no environment at {what!r}.")
    published = ON_A_HUB.fullmatch(what)
    if published:
        return hub_target(what, published, hub)
    named = REQUIREMENT.fullmatch(what)
    return InstallTarget(what=what, words=(what,), name=canonical_name(named["name"]) if named else None)


def local_folder(what: str, env_dir: str) -> Path | None:
    given = Path(what).expanduser()
    if looks_like_a_path(what) or (given.is_dir() and "/" in what):
        return given if given.is_dir() else None
    folder = Path(env_dir) / module_name(what)
    return folder if "/" not in what and folder.is_dir() else None


def looks_like_a_path(what: str) -> bool:
    return what.startswith((".", "/", "~")) or what.endswith(".py")


def local_target(what: str, folder: Path) -> InstallTarget:
    project = read_project_table(folder)
    if not (folder / "pyproject.toml").is_file():
        raise ConfigError(
            f"{folder} has no pyproject.toml, so it cannot be installed; it runs where it is: "
            f"proctor eval run {what}"
        )
    name = project.get("name")
    # A folder of tasks becomes a package when it is built, so it can only be copied.
    is_copied = is_task_folder(folder, module_name(str(name or folder.name)))
    return InstallTarget(
        what=what,
        words=(str(folder.resolve()),) if is_copied else ("-e", str(folder.resolve())),
        name=canonical_name(str(name)) if name else None,
        path=None if is_copied else folder,
    )


def file_target(what: str) -> InstallTarget:
    path = Path(what).expanduser()
    if not path.is_file():
        raise ConfigError(f"There is no file {what!r}.")
    name = canonical_name(path.name.partition("-")[0]) if path.suffix == ".whl" else None
    return InstallTarget(what=what, words=(str(path.resolve()),), name=name)


def hub_target(what: str, published: re.Match[str], hub: Hub | None) -> InstallTarget:
    if hub is None:
        raise ConfigError(
            f"{what!r} would come from a hub, but none is configured; log in with `proctor login`, set "
            f"{HUB_VARIABLE} to the address of a Proctor server, or give a folder, a wheel or a git+https "
            f"address."
        )
    version = published["version"]
    requirement = published["name"] + (f"=={version}" if version else "")
    return InstallTarget(
        what=what,
        words=(requirement,),
        name=canonical_name(published["name"]),
        index=f"{hub.url.rstrip('/')}/simple/{published['owner']}/",
        token=hub.token,
    )


def commands_for(targets: Sequence[InstallTarget], *, upgrade: bool = False) -> list[InstallerCommand]:
    """The commands to run, in order."""
    installer = (*find_installer(), *(("--upgrade",) if upgrade else ()))
    hubs = [target for target in targets if target.index]
    commands = [
        InstallerCommand(
            (*installer, "--no-deps", *each.words),
            sealed=True,
            variables=index_variables(each.index, each.token),
        )
        for each in hubs
        if each.index
    ]
    # Those from a hub are installed by then: this fetches only their dependencies.
    words = tuple(word for target in targets for word in target.words)
    return [*commands, InstallerCommand((*(find_installer() if hubs else installer), *words))]


def index_variables(index: str, token: str) -> dict[str, str]:
    """Variables that restrict pip and uv to one index."""
    parts = urlsplit(index)
    credentials = f"__token__:{quote(token, safe='')}@" if token else ""
    address = parts._replace(netloc=credentials + parts.netloc).geturl()
    # Plain HTTP has no certificate to trust; the user decided that by logging in there.
    trusted = {"PIP_TRUSTED_HOST": parts.netloc} if parts.scheme == "http" else {}
    return {"PIP_INDEX_URL": address, "UV_INDEX_URL": address, **trusted}


def find_installer(python: str = sys.executable) -> Installer:
    """The command that installs packages for an interpreter."""
    uv = shutil.which("uv")
    if uv:
        return (uv, "pip", "install", "--python", python)
    if importlib.util.find_spec("pip") is None:
        raise ConfigError(f"Neither uv nor pip is available; try: {sys.executable} -m ensurepip")
    other = () if python == sys.executable else ("--python", python)
    return (sys.executable, "-m", "pip", *other, "install", "--disable-pip-version-check")


def run_installer(command: InstallerCommand, environ: Mapping[str, str]) -> None:
    """Run an installer; if it fails, the error includes the end of its output."""
    program = command.words[0]
    try:
        done = subprocess.run(
            command.words,
            env={**(isolate_environ(environ) if command.sealed else environ), **command.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InstallError(f"{program} took more than {INSTALL_SECONDS:g} s and was killed.") from error
    except OSError as error:
        raise InstallError(f"{program} could not be started: {error.strerror}.") from error
    if done.returncode:
        last = done.stdout.decode(errors="replace").strip().splitlines()[-LAST_LINES:]
        raise InstallError(
            f"The installer ended with exit code {done.returncode}; its last lines are above.", last
        )


def isolate_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables without those that name other indexes, and with configuration files disabled."""
    others = {f"{tool}_{name}" for tool in ("PIP", "UV") for name in OTHER_INDEXES}
    kept = {name: value for name, value in environ.items() if name not in others}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "UV_NO_CONFIG": "1"}
