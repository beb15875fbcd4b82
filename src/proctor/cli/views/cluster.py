"""The nodes of a cluster as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from proctor.cli.views.page import TableColumn, print_table

if TYPE_CHECKING:
    from proctor.cluster.check import NodeReport
    from proctor.cluster.messages import ClusterNode

ID_LENGTH = 8


def show_nodes(nodes: Sequence[ClusterNode]) -> None:
    print_table(
        (
            "node",
            "address",
            "status",
            "CPUs free",
            "memory free",
            "GPUs free",
            TableColumn("other", may_shrink=True),
        ),
        [
            (
                node.id[:ID_LENGTH],
                node.host,
                describe_status(node),
                format_share(node, "CPU"),
                f"{node.free.get('memory', 0) / 10**9:.3g} of {node.total.get('memory', 0) / 10**9:.3g} GB",
                format_share(node, "GPU"),
                describe_others(node),
            )
            for node in nodes
        ],
        nothing="The cluster has no nodes.",
    )


def show_reports(reports: Sequence[NodeReport]) -> None:
    print_table(
        (
            *("node", "address", "could work", "Python", "Proctor", "bubblewrap", "route"),
            TableColumn("what is missing", may_shrink=True),
        ),
        [
            (
                report.node.id[:ID_LENGTH],
                report.node.host,
                "yes" if report.could_work else "no",
                *describe_probe(report),
                "; ".join((*report.problems, *report.warnings)),
            )
            for report in reports
        ],
        nothing="The cluster has no nodes.",
    )


def describe_probe(report: NodeReport) -> tuple[str, str, str, str]:
    probe = report.probe
    if probe is None:
        return "?", "?", "?", "?"
    return probe.python, probe.proctor or "-", probe.bubblewrap or "-", "no" if probe.route else "yes"


def describe_status(node: ClusterNode) -> str:
    if not node.is_alive:
        return "lost"
    return "head" if node.is_head else "alive"


def format_share(node: ClusterNode, name: str) -> str:
    total = node.total.get(name, 0.0)
    return f"{node.free.get(name, 0.0):g} of {total:g}" if total else "-"


def describe_others(node: ClusterNode) -> str:
    names = (name for name in node.total if name not in ("CPU", "GPU", "memory"))
    return ", ".join(f"{name} {format_share(node, name)}" for name in names)


def build_nodes_document(nodes: Sequence[ClusterNode]) -> dict[str, Any]:
    return {"nodes": [msgspec.to_builtins(node) for node in nodes]}


def build_reports_document(reports: Sequence[NodeReport]) -> dict[str, Any]:
    return {"nodes": [{**msgspec.to_builtins(report), "could_work": report.could_work} for report in reports]}
