"""The text that Prometheus reads."""

from __future__ import annotations

from proctor.support.metrics import Counter, Gauge, TimeHistogram, render_metrics


def test_metrics_are_written_as_prometheus_reads_them() -> None:
    asked = Counter("asked_total", "Questions,\nof all kinds.", ("kind",))
    asked.add(1, 'a "quoted" \\ one')
    asked.add(2.5, "plain")
    took = TimeHistogram("took_seconds", "Time.", bounds=(0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 99.0):
        took.observe(value)
    level = Gauge("level", "Now.", lambda: 1.5)
    nothing = Gauge("nothing", "Unknown.", dict)

    assert render_metrics([asked, took, level, nothing]).decode() == (
        "# HELP asked_total Questions,\\nof all kinds.\n"
        "# TYPE asked_total counter\n"
        'asked_total{kind="a \\"quoted\\" \\\\ one"} 1\n'
        'asked_total{kind="plain"} 2.5\n'
        "# HELP took_seconds Time.\n"
        "# TYPE took_seconds histogram\n"
        'took_seconds_bucket{le="0.1"} 2\n'
        'took_seconds_bucket{le="1"} 3\n'
        'took_seconds_bucket{le="+Inf"} 4\n'
        "took_seconds_sum 99.65\n"
        "took_seconds_count 4\n"
        "# HELP level Now.\n"
        "# TYPE level gauge\n"
        "level 1.5\n"
        "# HELP nothing Unknown.\n"
        "# TYPE nothing gauge\n"
    )
