"""The files of deploy/ before the real tools: Helm, the Kubernetes API's schemas, hadolint, systemd, a strict
parser of Compose files, Prometheus' grammar; and the commands of the Dockerfile in a folder of their own.

No cluster and no Docker engine takes part: docs/deployment.md says what that leaves unproven.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.deploy.test_files import DEPLOY, ROOT, copied_sources

pytestmark = pytest.mark.interop

COMPOSE = DEPLOY / "compose/compose.yaml"
VARIABLE = re.compile(r"\$\{\w+:([-?])([^}]*)\}")
CHART = DEPLOY / "helm/proctor"
KUBERNETES = ("1.30", "1.37")
"""The oldest that the chart names, and the newest whose schemas are there."""
LEAST = (
    "secrets.databaseUrl=postgresql://db/proctor",
    "secrets.secretKey=a2V5",
    "storage.address=s3://bucket/files",
)
FULL = (
    *LEAST,
    "ingress.enabled=true",
    "ingress.tlsSecret=tls",
    "metrics.serviceMonitor=true",
    "runner.replicas=2",
    "runner.tokens=tokens",
    "ray.enabled=true",
    "ray.authSecret=ray-token",
    "ray.runnerToken=runner-token",
)
FOREIGN = {"RayCluster", "ServiceMonitor", "PodMonitor"}
"""Kinds that an operator adds to a cluster; their Pods are checked all the same."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs are that check."""
    folder = tmp_path_factory.mktemp("tools")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    wanted = ["install", "--quiet", "--requirement", str(ROOT / "tests/deploy/tools.txt")]
    done = subprocess.run(
        [str(folder / "bin/pip"), *wanted], capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode:
        pytest.skip(f"the tools cannot be installed: {done.stderr[-300:]}")
    return folder / "bin"


def say(*words: str | Path, ok: bool = True, **more: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, timeout=300, check=False, **more
    )
    assert (done.returncode == 0) == ok, done.stdout + done.stderr
    return done.stdout + done.stderr


def render(tools: Path, *values: str, ok: bool = True) -> str:
    words = [word for value in values for word in ("--set", value)]
    return say(tools / "helm", "template", "rel", CHART, *words, ok=ok)


@pytest.mark.parametrize("values", [LEAST, FULL], ids=["least", "full"])
def test_the_chart_renders_what_the_api_of_kubernetes_accepts(
    tools: Path, tmp_path: Path, values: tuple[str, ...]
) -> None:
    say(tools / "helm", "lint", "--strict", CHART, *(word for each in values for word in ("--set", each)))
    documents = [each for each in yaml.safe_load_all(render(tools, *values)) if each]
    checked = [each for each in documents if each["kind"] not in FOREIGN] + list(pods_of_ray(documents))
    file = tmp_path / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(checked))
    for version in KUBERNETES:
        say(tools / "kubernetes-validate", "--strict", "--kubernetes-version", version, file)

    broken = yaml.safe_load_all(file.read_text().replace("replicas: 3", "replicas: three"))
    file.write_text(yaml.safe_dump_all(broken))
    assert "three" in say(
        tools / "kubernetes-validate", "--strict", "--kubernetes-version", KUBERNETES[0], file, ok=False
    )

    kinds = {each["kind"] for each in documents}
    wanted = {"Deployment", "Service", "Secret", "PodDisruptionBudget", "NetworkPolicy"}
    assert wanted <= kinds
    assert (kinds >= {"Ingress", "StatefulSet", *FOREIGN}) == (values is FULL)


def pods_of_ray(documents: list[Any]) -> list[Any]:
    """The Pods of a Ray cluster as templates that Kubernetes itself has a schema of."""
    clusters = [each["spec"] for each in documents if each["kind"] == "RayCluster"]
    groups = [group for spec in clusters for group in (spec["headGroupSpec"], *spec["workerGroupSpecs"])]
    for spec in clusters:
        assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
        assert set(spec) == {"rayVersion", "enableInTreeAutoscaling", "headGroupSpec", "workerGroupSpecs"}
    return [
        {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": f"pod-{number}"},
            "template": group["template"],
        }
        for number, group in enumerate(groups)
    ]


def test_pods_run_as_nobody_and_selectors_find_them(tools: Path) -> None:
    documents = [each for each in yaml.safe_load_all(render(tools, *FULL)) if each]
    owners = [each["spec"] for each in documents if each["kind"] in ("Deployment", "StatefulSet")]
    templates = [each["template"] for each in owners] + [each["template"] for each in pods_of_ray(documents)]
    assert len(templates) == 4
    for template in templates:
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        volumes = {volume["name"] for volume in pod["volumes"]} | {"data"}
        for container in pod["containers"]:
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
    labels = [template["metadata"]["labels"] for template in templates]
    for each in documents:
        selector = each["spec"].get("selector") or each["spec"].get("podSelector") if "spec" in each else None
        chosen = (selector or {}).get("matchLabels", selector) or {}
        if chosen and "ray.io/cluster" not in chosen:
            assert any(chosen.items() <= label.items() for label in labels), each["metadata"]["name"]


def test_what_the_chart_cannot_do_without_is_said_in_a_sentence(tools: Path) -> None:
    assert "set storage.address" in render(tools, ok=False)
    assert "secrets.databaseUrl" in render(tools, "server.replicas=1", ok=False)
    assert "runner.tokens" in render(tools, *LEAST, "runner.replicas=1", ok=False)
    assert "ray.authSecret" in render(tools, *LEAST, "ray.enabled=true", ok=False)


def test_the_dockerfile_has_nothing_that_hadolint_minds(tools: Path, tmp_path: Path) -> None:
    say(tools / "hadolint", DEPLOY / "Dockerfile")
    broken = tmp_path / "Dockerfile"
    broken.write_text((DEPLOY / "Dockerfile").read_text().replace("WORKDIR /data", "RUN cd /data"))
    assert "DL3003" in say(tools / "hadolint", broken, ok=False)


def test_the_compose_file_fits_its_schema(tools: Path) -> None:
    parse = "compose_spec.PyOptions(apply_merge=True).from_yaml(sys.stdin.read()).validate()"
    script = f"import sys, compose_spec; {parse}"
    text = VARIABLE.sub(lambda found: found[2] if found[1] == "-" else "given", COMPOSE.read_text())
    say(tools / "python", "-c", script, input=text)
    assert {"database", "objects", "server", "runner"} <= set(yaml.safe_load(text)["services"])
    for right, wrong in (
        ("restart: unless-stopped", "restarts: unless-stopped"),
        ("interval: 5s", "interval: soon"),
        ("secrets: [secret_key]", "secrets: [no_such_secret]"),
    ):
        assert right in text
        say(tools / "python", "-c", script, input=text.replace(right, wrong), ok=False)


def test_systemd_understands_the_units(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    program = tmp_path / "proctor"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    for file in (DEPLOY / "systemd").iterdir():
        unit = tmp_path / file.name
        unit.write_text(file.read_text().replace("/opt/proctor/bin/proctor", str(program)))
    for unit in tmp_path.glob("*.*"):
        assert say("systemd-analyze", "verify", "--man=no", unit) == ""
    words = ("systemd-analyze", "security", "--offline=true", "--threshold=60")
    for name in ("proctor-server", "proctor-runner"):
        assert "Overall exposure level" in say(*words, tmp_path / f"{name}.service")


def test_prometheus_can_parse_every_query_of_the_dashboard(tools: Path) -> None:
    dashboard = json.loads((DEPLOY / "grafana/proctor.json").read_text())
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    plain = [query.replace("$__rate_interval", "5m").replace("$job", ".*") for query in queries]
    script = "import json, sys, promql_parser\nfor each in json.load(sys.stdin): promql_parser.parse(each)"
    say(tools / "python", "-c", script, input=json.dumps(plain))
    say(tools / "python", "-c", script, input=json.dumps(["sum by (rate("]), ok=False)


def test_the_commands_of_the_dockerfile_make_a_server_that_answers(tmp_path: Path) -> None:
    """With this machine's Python, in a folder that has what the Dockerfile copies, and nothing else."""
    source, wheels, installed = tmp_path / "src", tmp_path / "wheels", tmp_path / "installed"
    source.mkdir()
    ignored = shutil.ignore_patterns("node_modules", "__pycache__", "dist", "tests")
    for name in copied_sources():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=ignored)
        else:
            shutil.copy(ROOT / name, source / name)
    pip = (sys.executable, "-m", "pip")
    say(*pip, "wheel", "--quiet", "--no-cache-dir", "--no-deps", "--wheel-dir", wheels, ".", cwd=source)
    (wheel,) = wheels.glob("proctor-*.whl")
    say(sys.executable, "-m", "venv", installed)
    say(installed / "bin/pip", "install", "--quiet", f"{wheel}[server]")

    text = (DEPLOY / "Dockerfile").read_text()
    command = json.loads(re.findall(r"^CMD (\[.*\])$", text, re.MULTILINE)[0])
    health = json.loads(re.findall(r"^\s+CMD (\[.*\])$", text, re.MULTILINE)[0])
    data = tmp_path / "data"
    words = [word.replace("/data", str(data)).replace("0.0.0.0", "127.0.0.1") for word in command]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    server = subprocess.Popen(
        [str(installed / "bin/proctor"), *words], env=environ, stderr=subprocess.PIPE, text=True
    )
    try:
        for _ in range(300):
            asked = subprocess.run(
                [str(installed / "bin/python"), *health[1:]], capture_output=True, check=False
            )
            if asked.returncode == 0:
                break
            assert server.poll() is None, server.communicate()
            time.sleep(0.2)
        assert asked.returncode == 0
        with urllib.request.urlopen("http://127.0.0.1:9464/metrics", timeout=10) as answer:
            assert b"proctor_runs" in answer.read()
        browser = urllib.request.Request("http://127.0.0.1:8700/", headers={"accept": "text/html"})
        with urllib.request.urlopen(browser, timeout=10) as answer:
            assert b"<script" in answer.read(), "the dashboard is missing"
    finally:
        server.send_signal(signal.SIGTERM)
        _, logged = server.communicate(timeout=60)
    assert all(json.loads(line)["level"] for line in logged.splitlines())
