"""Counters, gauges and histograms, and the text that Prometheus reads.

Everything happens in the thread of one event loop. Labels must have few values: each combination is kept for
as long as the process lives. Knows nothing of what is measured, nor of HTTP.
"""

from __future__ import annotations

import math
import os
import resource
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""The buckets of durations: from a read of the database to a long answer of a model."""

Labels = tuple[str, ...]
Values = Mapping[Labels, float]


class Metric:
    """A name, what it counts, and the names of its labels."""

    kind = "untyped"

    def __init__(self, name: str, help_text: str, labels: Labels = ()) -> None:
        self.name = name
        self.help_text = help_text
        self.labels = labels

    def samples(self) -> Iterator[tuple[str, Labels, Labels, float]]:
        """Each with its name, the names of its labels, their values, and its own."""
        raise NotImplementedError


class Counter(Metric):
    """Only grows; starts at zero if it has no labels, so that its rate is known from the first increase."""

    kind = "counter"

    def __init__(self, name: str, help_text: str, labels: Labels = ()) -> None:
        super().__init__(name, help_text, labels)
        self._values: dict[Labels, float] = {} if labels else {(): 0.0}

    def add(self, amount: float = 1.0, *values: str) -> None:
        self._values[values] = self._values.get(values, 0.0) + amount

    def samples(self) -> Iterator[tuple[str, Labels, Labels, float]]:
        for values, value in self._values.items():
            yield self.name, self.labels, values, value


class Gauge(Metric):
    """Looked up when it is read."""

    kind = "gauge"

    def __init__(
        self, name: str, help_text: str, look_up: Callable[[], float | Values], labels: Labels = ()
    ) -> None:
        super().__init__(name, help_text, labels)
        self._look_up = look_up

    def samples(self) -> Iterator[tuple[str, Labels, Labels, float]]:
        found = self._look_up()
        for values, value in found.items() if isinstance(found, Mapping) else [((), found)]:
            yield self.name, self.labels, values, value


class ProcessCounter(Gauge):
    """A counter that the kernel keeps."""

    kind = "counter"


class TimeHistogram(Metric):
    """How many values were at most as large as each bound."""

    kind = "histogram"

    def __init__(
        self, name: str, help_text: str, labels: Labels = (), bounds: Sequence[float] = SECONDS
    ) -> None:
        super().__init__(name, help_text, labels)
        self._bounds = tuple(bounds)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._start(())

    def observe(self, value: float, *values: str) -> None:
        counts = self._counts.get(values) or self._start(values)
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[values] += value

    def _start(self, values: Labels) -> list[int]:
        self._sums[values] = 0.0
        counts = self._counts[values] = [0] * (len(self._bounds) + 1)
        return counts

    def samples(self) -> Iterator[tuple[str, Labels, Labels, float]]:
        for values, counts in self._counts.items():
            reached = 0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                reached += count
                yield f"{self.name}_bucket", (*self.labels, "le"), (*values, format_number(bound)), reached
            yield f"{self.name}_sum", self.labels, values, self._sums[values]
            yield f"{self.name}_count", self.labels, values, reached


def render_metrics(metrics: Sequence[Metric]) -> bytes:
    return "".join(render_metric(each) for each in metrics).encode()


def render_metric(metric: Metric) -> str:
    lines = [f"# HELP {metric.name} {escape(metric.help_text)}", f"# TYPE {metric.name} {metric.kind}"]
    for name, labels, values, value in metric.samples():
        pairs = ",".join(f'{label}="{escape(each)}"' for label, each in zip(labels, values, strict=True))
        lines.append(
            f"{name}{{{pairs}}} {format_number(value)}" if pairs else f"{name} {format_number(value)}"
        )
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def format_number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


def measure_process() -> list[Metric]:
    """Of this process, under the names that dashboards know."""

    def used_seconds() -> float:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime

    return [
        ProcessCounter("process_cpu_seconds_total", "CPU seconds used.", used_seconds),
        Gauge("process_resident_memory_bytes", "Memory in use.", resident_bytes),
        Gauge("process_open_fds", "Open file descriptors.", lambda: count_entries("/proc/self/fd")),
        Gauge(
            "process_max_fds", "How many there may be.", lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        ),
    ]


def resident_bytes() -> float:
    with suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    return 0.0


def count_entries(folder: str) -> float:
    with suppress(OSError):
        return len(os.listdir(folder))  # noqa: PTH208 (a Path for each entry would be made for nothing)
    return 0.0
