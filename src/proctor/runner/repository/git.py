"""git as it is run in the sandbox: one commit, without its history, read without ever being checked out.

No file of a repository reaches the disk except inside git's own pack, so nothing in it can be a link, a hook
or a filter. Knows nothing of rollouts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import msgspec

from proctor.errors import ProctorError
from proctor.packages.archive import ArchiveError, check_path
from proctor.runner.repository.request import CommitLine, FetchProblem, FetchProblemCode, FetchRequest

BARE, WANTED = "repository.git", "refs/proctor/wanted"
KEY_FILE, KNOWN_HOSTS_FILE, CONFIG_FILE = "deploy_key", "known_hosts", "gitconfig"
HISTORY = "history.git"
LARGEST_FOR_HISTORY = 200 * 2**20
"""Some servers cannot leave files out, and send those of every commit."""
LOG_FORMAT = "%H%x00%an%x00%s%x00%ct"
LONGEST_BRANCH = 200
LONGEST_ERROR = 2_000
FILE_MODES = (b"100644", b"100755", b"100664")
SYMLINK, SUBMODULE = b"120000", b"160000"
LFS_POINTER = b"version https://git-lfs.github.com/spec/"
GIT_CONFIG = """\
[safe]
	directory = *
[core]
	hooksPath = /dev/null
	symlinks = false
	fsmonitor = false
	sshCommand = {ssh}
[protocol]
	allow = never
[protocol "{scheme}"]
	allow = always
[http]
	followRedirects = false
	lowSpeedLimit = 1000
	lowSpeedTime = 30
	{proxy}
	{ca}
[credential]
	helper =
[gc]
	auto = 0
[fetch]
	recurseSubmodules = false
[submodule]
	recurse = false
"""
SSH = (
    "ssh -F none -i {key} -o IdentitiesOnly=yes -o BatchMode=yes -o PasswordAuthentication=no "
    "-o StrictHostKeyChecking={check} -o UserKnownHostsFile={known} -o ConnectTimeout=30 {proxy}"
)
"""Paths have no spaces: they are those of the sandbox."""
PROBLEMS: Sequence[tuple[re.Pattern[str], FetchProblemCode]] = (
    (re.compile(r"couldn't find remote ref HEAD"), "bad_repository"),
    (re.compile(r"couldn't find remote ref"), "unknown_branch"),
    (
        re.compile(r"not our ref|unadvertised object|no such remote ref|bad object|missing commit"),
        "unknown_commit",
    ),
    (
        re.compile(
            r"Authentication failed|could not read Username|Permission denied|error: 40[13]|access rights"
            r"|HTTP Basic|Host key verification failed|terminal prompts disabled"
        ),
        "source_denied",
    ),
)


class RepositoryError(ProctorError):
    """A repository that cannot be fetched, or does not hold what was asked for."""

    def __init__(self, code: FetchProblemCode, message: str, log: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.problem = FetchProblem(code, message)
        self.log = log
        """What was done before."""


class TreeFile(msgspec.Struct, frozen=True):
    """A file of a commit."""

    path: str
    blob: str
    size: int
    is_executable: bool


class Repository:
    """A bare repository in a folder, with at most one commit."""

    def __init__(self, folder: Path, request: FetchRequest) -> None:
        self.folder = folder
        self.request = request
        self._variables = prepare_variables(folder, request)

    def fetch(self) -> str:
        """Fetch the wanted commit; returns its hash."""
        request = self.request
        wanted = request.commit or (f"refs/heads/{request.branch}" if request.branch else "HEAD")
        self._run("init", "--quiet", "--bare", BARE, inside=False)
        options = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head")
        self._run("fetch", *options, "--", request.url, f"+{wanted}:{WANTED}")
        found = self._run("rev-parse", "--verify", f"{WANTED}^{{commit}}").decode().strip()
        if request.commit and found != request.commit:
            raise RepositoryError("unknown_commit", f"{request.commit} is not a commit of {request.url}.")
        return found

    def find_default_branch(self) -> str:
        """The branch that HEAD names; empty if it names none."""
        listing = self._run("ls-remote", "--symref", "--", self.request.url, "HEAD")
        first = listing.decode(errors="replace").partition("\n")[0]
        found = re.fullmatch(r"ref: refs/heads/(\S+)\tHEAD", first)
        return found[1] if found else ""

    def describe(self, commit: str) -> tuple[str, str, float]:
        """Its author, the first line of its message, and when it was committed."""
        text = self._run("log", "-1", f"--format={LOG_FORMAT}", "--no-show-signature", commit)
        line = parse_log_line(text.decode(errors="replace").rstrip("\n"))
        return line.author, line.subject, line.committed_at

    def list_branches(self, most: int) -> list[str]:
        listing = self._run("ls-remote", "--heads", "--", self.request.url).decode(errors="replace")
        found = re.findall(r"^[0-9a-f]{40,64}\trefs/heads/(\S+)$", listing, re.MULTILINE)
        return [name for name in found if len(name) <= LONGEST_BRANCH][:most]

    def list_history(self, commit: str, most: int) -> list[CommitLine]:
        """A commit and those before it, without their files where the server can leave them out. They are
        fetched to a repository of their own: one with gaps must not be read for anything else."""
        if self._measure_pack() > LARGEST_FOR_HISTORY:
            raise RepositoryError(
                "bad_repository", "one commit is so large that those before it are not fetched."
            )
        self._run("init", "--quiet", "--bare", HISTORY, inside=False)
        where = ("--git-dir", HISTORY)
        options = ("--quiet", f"--depth={most}", "--filter=tree:0", "--no-tags", "--no-write-fetch-head")
        source = (self.request.url, f"+{commit}:{WANTED}")
        self._run(*where, "fetch", *options, "--no-recurse-submodules", "--", *source, inside=False)
        log = ("log", f"-{most}", f"--format={LOG_FORMAT}", "--no-show-signature", commit)
        text = self._run(*where, *log, inside=False).decode(errors="replace")
        return [parse_log_line(line) for line in text.split("\n") if line]

    def _measure_pack(self) -> int:
        packs = (self.folder / BARE / "objects" / "pack").glob("*.pack")
        return sum(pack.stat().st_size for pack in packs)

    def list_folder(self, tree: str) -> Iterator[tuple[bytes, str, str]]:
        """The kind, hash and name of each entry of a tree."""
        listing = self._run("ls-tree", "-z", tree)
        for entry in listing.split(b"\0")[:-1]:
            head, _, name = entry.partition(b"\t")
            _, kind, hash_ = head.split()
            yield kind, hash_.decode(), name.decode(errors="backslashreplace")

    def find_tree(self, commit: str, path: str) -> str | None:
        with suppress(RepositoryError):
            found = self._run("rev-parse", "--verify", "--quiet", f"{commit}:{path}").decode().strip()
            if self._run("cat-file", "-t", found).strip() == b"tree":
                return found
        return None

    def list_direct_files(self, tree: str, ending: str, most: int) -> list[TreeFile]:
        """The plain files of one folder whose names have an ending, by name."""
        found: list[TreeFile] = []
        with self._open("ls-tree", "-l", "-z", tree) as process:
            for entry in read_entries(process):
                if not entry.endswith(ending.encode()) or not entry.startswith(FILE_MODES):
                    continue
                found.append(parse_entry(entry, tree))
                if len(found) >= most:
                    process.kill()
                    break
        return found

    def list_files(self, tree: str, where: str, most_files: int, most_bytes: int) -> list[TreeFile]:
        """All files below a tree, each a plain one at a plain path."""
        files: list[TreeFile] = []
        room = most_bytes
        with self._open("ls-tree", "-r", "-l", "-z", tree) as process:
            for entry in read_entries(process):
                file = parse_entry(entry, where)
                room -= file.size
                files.append(file)
                if len(files) > most_files or room < 0:
                    process.kill()  # a tree can be small and list billions of files
                    raise RepositoryError(
                        "bad_repository",
                        f"{where} has more than {most_files:,} files or {most_bytes // 2**20} MB; keep data "
                        f"out of it.",
                    )
        if process.returncode:
            raise RepositoryError("bad_repository", f"{where} cannot be read: its tree is damaged.")
        return files

    def read_files(self, files: Sequence[TreeFile], where: str) -> Iterator[tuple[TreeFile, bytes]]:
        with self._open("cat-file", "--batch", stdin=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            for file in files:
                process.stdin.write(f"{file.blob}\n".encode())
                process.stdin.flush()
                head = process.stdout.readline().split()
                if head[1:2] != [b"blob"] or int(head[2]) != file.size:
                    raise RepositoryError(
                        "bad_repository", f"{where}/{file.path} cannot be read: it is damaged."
                    )
                content = process.stdout.read(file.size)
                process.stdout.read(1)
                if content.startswith(LFS_POINTER):
                    raise RepositoryError(
                        "bad_repository",
                        f"{where}/{file.path} is kept in Git LFS, which is not fetched; commit the file "
                        f"itself, or keep it in a dataset.",
                    )
                yield file, content
            process.stdin.close()

    @property
    def known_hosts(self) -> str:
        try:
            return (self.folder / KNOWN_HOSTS_FILE).read_text()
        except FileNotFoundError:
            return ""

    def _open(self, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ("git", "--git-dir", BARE, *words),
            cwd=self.folder,
            env=self._variables,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def _run(self, *words: str, inside: bool = True) -> bytes:
        where = ("--git-dir", BARE) if inside else ()
        done = subprocess.run(
            ("git", *where, *words),
            cwd=self.folder,
            env=self._variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise explain_failure(done.stderr.decode(errors="replace"), self.request)
        return done.stdout


def prepare_variables(folder: Path, request: FetchRequest) -> dict[str, str]:
    """The environment of every git: its configuration is ours alone, and it never asks."""
    ssh = write_ssh_command(folder, request) if request.key else "false"
    scheme = scheme_of(request.url)
    proxy = f"proxy = {request.proxy}" if request.proxy else ""
    ca = f"sslCAInfo = {request.ca_file}" if request.ca_file else ""
    (folder / CONFIG_FILE).write_text(GIT_CONFIG.format(ssh=ssh, scheme=scheme, proxy=proxy, ca=ca))
    variables = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(folder),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),  # for ssh's ProxyCommand
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(folder / CONFIG_FILE),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }
    if request.header:  # in no file and on no command line
        header = f"Authorization: {request.header}"
        variables |= {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader"}
        variables["GIT_CONFIG_VALUE_0"] = header
    return variables


def parse_log_line(text: str) -> CommitLine:
    commit, author, subject, seconds = text.split("\0")
    return CommitLine(commit=commit, author=author[:200], subject=subject[:200], committed_at=float(seconds))


def scheme_of(url: str) -> str:
    return urlsplit(url).scheme or "file"


def write_ssh_command(folder: Path, request: FetchRequest) -> str:
    key, known = folder / KEY_FILE, folder / KNOWN_HOSTS_FILE
    with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(request.key.rstrip("\n") + "\n")
    if request.known_hosts:
        known.write_text(request.known_hosts)
    connect = f"{sys.executable} -P -m proctor.runner.repository.connect {request.proxy} %h %p"
    proxy = f"-o 'ProxyCommand={connect}'" if request.proxy else ""
    check = "yes" if request.known_hosts else "accept-new"
    command = SSH.format(key=key, check=check, known=known, proxy=proxy)
    return '"' + command.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_entries(process: subprocess.Popen[bytes]) -> Iterator[bytes]:
    """Entries that end with a zero byte, as they come."""
    assert process.stdout is not None
    out: IO[bytes] = process.stdout
    rest = b""
    while chunk := out.read(2**16):
        *entries, rest = (rest + chunk).split(b"\0")
        yield from entries


def parse_entry(entry: bytes, where: str) -> TreeFile:
    head, _, raw = entry.partition(b"\t")
    mode, _, blob, size = head.split()
    path = raw.decode(errors="backslashreplace")
    try:
        check_path(path)
    except ArchiveError as error:
        raise RepositoryError("bad_repository", f"{where} was refused: {error}") from error
    if mode not in FILE_MODES:
        kinds: Mapping[bytes, str] = {SYMLINK: "a link", SUBMODULE: "a submodule"}
        raise RepositoryError(
            "bad_repository",
            f"{where}/{path} is {kinds.get(mode, 'not a file')}; only files are fetched, so put the "
            f"file there itself.",
        )
    return TreeFile(path, blob.decode(), int(size), mode == b"100755")


def explain_failure(printed: str, request: FetchRequest) -> RepositoryError:
    """git's complaint, as a sentence with a next step."""
    found = [code for pattern, code in PROBLEMS if pattern.search(printed)]
    code: FetchProblemCode = found[0] if found else "source_unreachable"
    last = next((line for line in reversed(printed.strip().splitlines()) if line.strip()), "git failed")
    detail = last.removeprefix("fatal: ").removeprefix("error: ").strip()[:LONGEST_ERROR]
    if code == "unknown_branch":
        return RepositoryError(code, f"{request.url} has no branch {request.branch!r}; push it first.")
    if code == "unknown_commit":
        return RepositoryError(
            code, f"{request.url} has no commit {request.commit[:12]}; push it, or name one that is pushed."
        )
    if code == "source_denied":
        return RepositoryError(
            code, f"{request.url} refuses access ({detail}); give the source a valid token or key."
        )
    if code == "bad_repository":
        return RepositoryError(code, f"{request.url} has no commit on its default branch; push one.")
    return RepositoryError(code, f"{request.url} cannot be fetched: {detail}.")
