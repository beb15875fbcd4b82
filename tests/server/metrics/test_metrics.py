"""What an operator scrapes from a server, while people use it and while its database is away."""

from __future__ import annotations

import asyncio
import json
import re
import socket
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from proctor.client.contexts import Context
from proctor.errors import ConfigError
from proctor.runner.host import RunHost
from proctor.runner.host_settings import HostSettings
from proctor.server.metrics import measures
from proctor.server.settings import Settings
from proctor.support.metrics_address import MetricsAddress, parse_metrics_address
from proctor.support.metrics_listener import MetricsListener
from tests.ports import free_port
from tests.server.gateway.provider import KEY, REGISTRY, providing
from tests.server.postgres import Cluster
from tests.server.runs import making
from tests.server.serving import Served, serving, settings_in
from tests.waiting import wait_for

SAMPLE = re.compile(r"([a-z_]+)(\{[^}]*\})? (\S+)")
ASKED = {"model": "chatty", "messages": [{"role": "user", "content": "2 + 2?"}]}
MOST_SERIES = 1_500
"""That one server may export, whatever people do."""


class Scraped(NamedTuple):
    values: dict[str, float]
    """By name and labels."""
    text: str

    def names(self) -> set[str]:
        return {sample.partition("{")[0] for sample in self.values}


def scrape(settings: Settings) -> Scraped:
    assert settings.metrics is not None
    address = f"http://127.0.0.1:{settings.metrics.port}/metrics"
    with urllib.request.urlopen(address, timeout=10) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    values = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            values[sample[1] + (sample[2] or "")] = float(sample[3])
    return Scraped(values, text)


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("TEST_PROVIDER_KEY", KEY)
    monkeypatch.setattr(measures, "STORED_SECONDS", 0.0)
    registry = tmp_path / "endpoints.toml"
    with providing() as provider:
        registry.write_text(REGISTRY.format(url=provider.url))
        address = MetricsAddress(free_port())
        with serving(settings_in(tmp_path, endpoints=registry, metrics=address)) as server:
            yield server


def test_what_people_do_is_counted_and_what_they_wrote_is_not_exported(measured: Served) -> None:
    ada = measured.user("ada-lovelace")
    database = measured.platform.database
    database.write_now(making.environment, "ada-lovelace", "private-thing")
    names = {
        "environment_id": "env-ada-lovelace-private-thing",
        "version_id": "ver-ada-lovelace-private-thing",
    }
    for _ in range(2):
        database.write_now(making.run, "ada-lovelace", now=1.0, **names)
    before = scrape(measured.platform.settings)

    assert ada("POST", "/v1/chat/completions", ASKED).status == 200
    assert ada("POST", "/v1/chat/completions", {**ASKED, "model": "no-such-secret-name"}).status == 404
    assert ada("GET", "/runs/a-strangers-path").status == 404
    assert ada("GET", "/not/a/route").status == 404
    assert ada("PROPFIND", "/runs").status == 405
    ada.get("/runs")

    now = scrape(measured.platform.settings)
    values = now.values
    assert values['proctor_gateway_calls_total{model="chatty"}'] == 1
    assert values['proctor_gateway_tokens_total{model="chatty",direction="input"}'] == 1000
    assert values['proctor_gateway_tokens_total{model="chatty",direction="output"}'] == 200
    assert values["proctor_gateway_call_seconds_count"] == 2
    assert values['proctor_http_requests_total{area="gateway",method="POST",status="4xx"}'] == 1
    assert values['proctor_http_requests_total{area="runs",method="GET",status="2xx"}'] == 1
    assert values['proctor_http_requests_total{area="runs",method="GET",status="4xx"}'] == 1
    assert values['proctor_http_requests_total{area="runs",method="other",status="4xx"}'] == 1
    assert values['proctor_http_requests_total{area="other",method="GET",status="4xx"}'] == 1
    assert values['proctor_runs{status="pending"}'] == 2
    assert values['proctor_runs{status="finished"}'] == 0
    assert values["proctor_queue_oldest_seconds"] > 1e9
    assert values["proctor_database_up"] == 1
    assert values['proctor_database_seconds_count{kind="write"}'] > before.values.get(
        'proctor_database_seconds_count{kind="write"}', 0
    )
    assert values["process_cpu_seconds_total"] >= before.values["process_cpu_seconds_total"] > 0
    for private in ("ada", "private-thing", "no-such-secret-name", "strangers", "PROPFIND", KEY):
        assert private not in now.text
    assert len(values) < MOST_SERIES
    assert ada("GET", "/metrics", headers={"accept": "text/plain"}).status == 404, "not on the public port"


def test_a_silent_database_leaves_its_figures_out_and_the_rest_answered(
    tmp_path: Path, restartable: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measures, "STORED_SECONDS", 0.0)
    settings = settings_in(tmp_path, database=restartable.fresh(), metrics=MetricsAddress(free_port()))
    with serving(settings):
        wait_for(lambda: "proctor_runs" in scrape(settings).names())
        with restartable.frozen():
            monkeypatch.setattr(measures, "PATIENCE_SECONDS", 0.2)
            silent = scrape(settings).names()
        assert "proctor_runs" not in silent
        assert "proctor_followers" in silent
        wait_for(lambda: "proctor_runs" in scrape(settings).names())


def test_a_port_that_is_taken_is_refused_in_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = MetricsAddress(other.getsockname()[1])
        with pytest.raises(ConfigError, match=f"on 127.0.0.1:{address.port} .*--metrics"):
            asyncio.run(MetricsListener(address, []).start())


def test_an_address_without_a_host_is_for_this_machine_only() -> None:
    assert parse_metrics_address("9464") == MetricsAddress(9464, "127.0.0.1")
    assert parse_metrics_address("[::]:9464") == MetricsAddress(9464, "::")
    assert parse_metrics_address("0.0.0.0:9464") == MetricsAddress(9464, "0.0.0.0")
    for wrong in ("", "here", "host:", "host:70000", "host:-1"):
        with pytest.raises(ConfigError, match="HOST:PORT"):
            parse_metrics_address(wrong)


def test_every_query_of_the_grafana_dashboard_asks_for_metrics_that_are_exported(
    measured: Served, tmp_path: Path
) -> None:
    dashboard = json.loads((Path(__file__).parents[3] / "deploy/grafana/proctor.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = {name for query in queries for name in re.findall(r"\b(?:proctor|process)_[a-z_]+", query)}

    ada = measured.user("ada")
    assert ada("POST", "/v1/chat/completions", ASKED).status == 200
    exported = scrape(measured.platform.settings).names()
    runner = RunHost(Context(url=measured.url, token=""), HostSettings(data=tmp_path / "runner"))
    exported |= {metric.name for metric in runner.metrics}
    measured.call(runner.server.close)

    assert asked <= exported, asked - exported
    shown = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in exported}
    assert {name for name in shown if name.startswith("proctor_")} <= {
        name.removesuffix("_bucket") for name in asked
    }, "a metric is on no panel"
