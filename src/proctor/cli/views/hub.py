"""A hub's environments as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from proctor.cli.views.environments import show_rows
from proctor.cli.views.escape import echo, one_line, strip_escapes
from proctor.cli.views.formatting import format_moment
from proctor.cli.views.page import TableColumn, print_table

if TYPE_CHECKING:
    from proctor.api.common import Page
    from proctor.api.hub import Check, Collaborator, EnvironmentInfo, FileText, Version
    from proctor.cli.commands.hub_push import PushOutcome

LAST_LINES = 15
HASH_LENGTH = 12


def show_pushed(outcome: PushOutcome) -> None:
    pushed = outcome.pushed
    version = pushed.version
    if outcome.raised_from:
        echo(f"Raised the version in pyproject.toml from {outcome.raised_from} to {version.version}.")
    if not pushed.created:
        return
    slug = pushed.environment.slug
    echo(
        f"Pushed {slug} {version.version} ({pushed.environment.visibility}, {outcome.files} files, "
        f"content {version.content_hash[:HASH_LENGTH]})."
    )
    if version.check.status in ("pending", "running"):
        echo(f"  proctor env info {slug}     the status of its check\n  proctor env install {slug}")


def show_environments(page: Page[EnvironmentInfo]) -> None:
    print_table(
        ("name", "version", "visibility", "check", "changed", TableColumn("description", may_shrink=True)),
        [
            (
                each.slug,
                each.latest.version if each.latest else "-",
                each.visibility,
                each.latest.check.status if each.latest else "-",
                format_moment(each.updated_at),
                each.description,
            )
            for each in page.items
        ],
        nothing="No environment on the hub matches, or you may not see it.",
    )
    if page.next_cursor:
        echo(f"There are more: --cursor {page.next_cursor}", err=True)


def show_environment(info: EnvironmentInfo, version: Version | None) -> None:
    rows = [
        ("description", info.description),
        ("visibility", info.visibility),
        ("may run it", info.run_policy),
        ("your role", info.role or ""),
        ("tags", ", ".join(info.tags)),
        ("forked from", info.forked_from or ""),
    ]
    if version is not None:
        rows += [
            ("content", version.content_hash),
            ("pushed", f"{format_moment(version.created_at)} by {version.pushed_by}"),
            ("wheel", f"{version.wheel_name} ({version.wheel_size:,} bytes)"),
            ("python", version.requires_python),
            ("needs", ", ".join(version.dependencies)),
            ("secrets", ", ".join(version.secrets)),
        ]
    echo(f"{info.slug} {version.version if version else '(no versions)'}")
    show_rows("", rows)
    if version is not None:
        show_check(version.check)


def describe_run_policy(info: EnvironmentInfo) -> str:
    source = " (the server's default)" if info.run_policy_is_default else ""
    whom = "everyone who may read it" if info.run_policy == "readers" else "only those who may change it"
    return f"{info.slug} may be run by its {info.run_policy}{source}: {whom}."


def show_check(check: Check) -> None:
    tasks = "" if check.tasks is None else f", {check.tasks:,} tasks"
    echo(f"Check: {check.status}{tasks}. {one_line(check.message)}".rstrip())
    if check.status in ("failed", "inconclusive"):
        for line in strip_escapes(check.log).splitlines()[-LAST_LINES:]:
            echo(f"  {line}")


def show_versions(versions: Sequence[Version]) -> None:
    print_table(
        ("version", "content", "pushed", "by", "check", TableColumn("message", may_shrink=True)),
        [
            (
                each.version,
                each.content_hash[:HASH_LENGTH],
                format_moment(each.created_at),
                each.pushed_by,
                each.check.status,
                each.check.message,
            )
            for each in versions
        ],
        nothing="The environment has no versions.",
    )


def show_file(found: FileText) -> None:
    if found.entries is not None:
        columns = (TableColumn("bytes", right=True), "path")
        print_table(columns, [(f"{entry.size:,}", entry.path) for entry in found.entries])
        return
    if found.text is None:
        echo(f"{found.path} is not text ({found.size:,} bytes).", err=True)
        return
    echo(strip_escapes(found.text), nl=not found.text.endswith("\n"))
    if found.truncated:
        echo(f"… the beginning of {found.size:,} bytes; --max-bytes shows more.", err=True)


def show_collaborators(slug: str, found: Sequence[Collaborator]) -> None:
    rows = [(each.name, each.role) for each in found]
    print_table(("name", "role"), rows, nothing=f"{slug} is shared with no one.")
