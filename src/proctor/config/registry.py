"""The endpoint registry: a TOML file with an [[endpoint]] for each address where a model answers.

    [[endpoint]]
    endpoint_id = "fast"                        # what -m and endpoint_id call it
    model = "qwen/qwen3-8b"
    url = "https://llm.example.com/v1"
    key = "EXAMPLE_API_KEY"                     # the variable that holds the key
    price = { input = 0.1, output = 0.4 }       # dollars per million tokens

Several with one endpoint_id are replicas. All problems of the file are reported at once. Knows
nothing of the environment's variables, nor of which clients are registered: their names are passed in.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from proctor.config import headers as http_headers
from proctor.config.api_addresses import address_problem
from proctor.config.endpoints import EMBEDDED_CLIENTS, NO_REGISTRY, Endpoint, Registry
from proctor.config.fields import report_bad_headers
from proctor.config.prices import Price
from proctor.config.providers import CHAT, find_provider_by_host, is_variable_name
from proctor.config.schema import DEFAULT_REGISTRY
from proctor.config.toml_file import FileProblems, KeyPath, TomlFile, describe_value, read_toml
from proctor.errors import ConfigError, did_you_mean

FILE_NAME = "endpoints.toml"
TABLE = "endpoint"
SYNONYMS = {
    "api_base_url": "url",
    "api_key_var": "key",
    "api_client_type": "type",
    "extra_headers": "headers",
}
"""Another name for a field → the field."""
FIELDS = (
    "endpoint_id",
    "model",
    "url",
    "key",
    "type",
    "headers",
    "price",
    "max_concurrent",
    "requests_per_minute",
    "tokens_per_minute",
    "max_output_tokens",
    "context_tokens",
)
SHARED_FIELDS = ("price", "max_concurrent", "requests_per_minute", "tokens_per_minute")
"""What replicas may or may not have in common; the rest they share, or it is the first one's."""


def open_registry(endpoints_path: str, client_types: Collection[str] = ()) -> Registry:
    """Read the registry at a path; a missing file is an error unless the path is the default."""
    path = Path(endpoints_path).expanduser()
    if path.is_dir():
        path /= FILE_NAME
    if path.suffix == ".py":
        raise ConfigError(
            f"{path} is a Python file, and an endpoint registry is TOML; write an [[endpoint]] table for "
            f"each endpoint into {path.with_suffix('.toml')}."
        )
    if not path.exists():
        if endpoints_path == DEFAULT_REGISTRY:
            return NO_REGISTRY
        raise ConfigError(f"No endpoint registry {path}; check -e or endpoints_path.")
    return read_registry(path, client_types)


def read_registry(path: Path, client_types: Collection[str] = ()) -> Registry:
    """Every endpoint of a file; a file in which anything is wrong is not used at all."""
    file = read_toml(path)
    findings = FileProblems(file)
    rows = [
        (where, endpoint)
        for where, table in read_tables(file, findings)
        if (endpoint := EndpointReader(table, where, findings, client_types).endpoint()) is not None
    ]
    by_alias: dict[str, list[tuple[KeyPath, Endpoint]]] = {}
    for where, endpoint in rows:
        by_alias.setdefault(endpoint.alias, []).append((where, endpoint))
    for replicas in by_alias.values():
        check_replicas_match(replicas, findings)
    findings.raise_any()
    endpoints = {alias: merge_replicas([each for _, each in found]) for alias, found in by_alias.items()}
    return Registry(endpoints, str(path))


def read_tables(file: TomlFile, findings: FileProblems) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
    for name in file.data:
        if name in ("eval", "ablation"):
            findings.add(
                (name,), f"[[{name}]] belongs in a suite; an endpoint registry holds [[endpoint]] only."
            )
        elif name != TABLE:
            findings.add(
                (name,), f"unknown name {name!r}; an endpoint registry holds [[endpoint]] tables only."
            )
    rows = file.data.get(TABLE, [])
    if isinstance(rows, dict):
        findings.add((TABLE,), "[endpoint] is one table; write [[endpoint]], with two brackets.")
        return
    if not isinstance(rows, list):
        findings.add((TABLE,), "endpoint must be a table; write [[endpoint]].")
        return
    for number, row in enumerate(rows):
        where = (TABLE, number)
        if isinstance(row, dict):
            yield where, row
        else:
            findings.add(where, "endpoint must be a table; write [[endpoint]].")


class EndpointReader:
    """One [[endpoint]], being read."""

    def __init__(
        self, table: Mapping[str, Any], where: KeyPath, findings: FileProblems, client_types: Collection[str]
    ) -> None:
        self.where = where
        self.findings = findings
        self.client_types = client_types
        self.spelled: dict[str, str] = {}
        """Field → how it is called here."""
        self.table = self._by_field(table)

    def endpoint(self) -> Endpoint | None:
        """The endpoint, or None if anything is wrong with it."""
        before = self.findings.count
        client_type = self._client_type()
        url = self._url(client_type)
        endpoint = Endpoint(
            alias=self._text("endpoint_id", required=True),
            model=self._text("model", required=True),
            client_type=client_type,
            url=url,
            key_var=self._key_var(url),
            headers=self._headers(),
            price=self._price(),
            max_concurrent=self._count("max_concurrent"),
            requests_per_minute=self._rate("requests_per_minute"),
            tokens_per_minute=self._rate("tokens_per_minute"),
            max_output_tokens=self._count("max_output_tokens"),
            context_tokens=self._count("context_tokens"),
        )
        return endpoint if self.findings.count == before else None

    def _by_field(self, table: Mapping[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in table.items():
            field = SYNONYMS.get(name, name)
            if field not in FIELDS:
                self._unknown(name)
            elif field in found:
                self._report_duplicate(field, name, found[field], value)
            else:
                found[field] = value
                self.spelled[field] = name
        return found

    def _unknown(self, name: str) -> None:
        if name == "client_type":
            self._add("client_type", "'client_type' is called 'api_client_type' (or 'type').")
        else:
            self._add(name, f"unknown field {name!r}{did_you_mean(name, [*FIELDS, *SYNONYMS])}")

    def _report_duplicate(self, field: str, name: str, before: Any, value: Any) -> None:
        other = self.spelled[field]
        if field == "headers":
            self._add(name, f"{other!r} and {name!r} mean the same; keep one of them.")
        elif before != value:  # not shown: it may hold a key
            self._add(
                name, f"{other!r} and {name!r} mean the same, but have different values; keep one of them."
            )

    def _add(self, field: str, text: str) -> None:
        self.findings.add((*self.where, self.spelled.get(field, field)), text)

    def _report_invalid(self, field: str, what: str) -> None:
        name = self.spelled.get(field, field)
        self._add(field, f"{name!r} must be {what}, not {describe_value(self.table[field])}.")

    def _text(self, field: str, *, required: bool = False) -> str:
        if field not in self.table:
            if required:
                self.findings.add(self.where, f"this endpoint has no {field!r}.")
            return ""
        value = self.table[field]
        if not isinstance(value, str):
            self._report_invalid(field, "a text")
        elif not value.strip():
            self._add(field, f"{self.spelled[field]!r} is empty.")
        else:
            return value
        return ""

    def _client_type(self) -> str:
        client_type = self._text("type") or CHAT
        if self.client_types and client_type not in self.client_types:
            nearest = did_you_mean(client_type, self.client_types)
            self._add("type", f"no client type is called {client_type!r}{nearest}")
        return client_type

    def _url(self, client_type: str) -> str:
        url = self._text("url")
        if client_type in EMBEDDED_CLIENTS:
            return url
        if "url" not in self.table:
            self.findings.add(self.where, "this endpoint has no 'url'.")
        elif url and (problem := address_problem(url)):
            self._add("url", problem)
            return ""
        return url.rstrip("/")

    def _key_var(self, url: str) -> str | None:
        if "key" not in self.table:
            provider = find_provider_by_host(url) if url else None
            return provider.key_vars[0] if provider else None
        if self.table["key"] == "":
            self._add("key", f"{self.spelled['key']!r} is empty; leave it out for an endpoint without a key.")
            return None
        key_var = self._text("key")
        if key_var and not is_variable_name(key_var):
            self._add(
                "key",
                f"{self.spelled['key']!r} must be the name of an environment variable; "
                f"the key itself does not belong here.",
            )
        return key_var or None

    def _headers(self) -> dict[str, str]:
        headers = self.table.get("headers", {})
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            report_bad_headers(headers, (*self.where, self.spelled["headers"]), self.findings)
            return {}
        for problem in http_headers.find_problems(headers):
            self._add("headers", problem)
        return http_headers.merge_headers(headers)

    def _price(self) -> Price | None:
        if "price" not in self.table:
            return None
        price = self.table["price"]
        if not isinstance(price, dict):
            self._report_invalid("price", "a table such as { input = 0.4, output = 1.6 }")
            return None
        before = self.findings.count
        known = msgspec.structs.fields(Price)
        for name, value in price.items():
            if name not in {field.name for field in known}:
                nearest = did_you_mean(name, [field.name for field in known])
                self._add_price(name, f"unknown field {name!r} of a price{nearest}")
            elif not is_number(value) or value < 0:
                text = f"{name!r} must be dollars per million tokens, 0 or more, not {describe_value(value)}."
                self._add_price(name, text)
        for field in known:
            if field.required and field.name not in price:
                self._add("price", f"the price has no {field.name!r}.")
        return Price(**price) if self.findings.count == before else None

    def _add_price(self, name: str, text: str) -> None:
        self.findings.add((*self.where, "price", name), text)

    def _count(self, field: str) -> int | None:
        value: int | None = self.table.get(field)
        if value is None or is_count(value):
            return value
        self._report_invalid(field, "a whole number of 1 or more")
        return None

    def _rate(self, field: str) -> float | None:
        value: float | None = self.table.get(field)
        if value is None or (is_number(value) and value > 0):
            return value
        self._report_invalid(field, "a number above 0")
        return None


def check_replicas_match(replicas: Sequence[tuple[KeyPath, Endpoint]], findings: FileProblems) -> None:
    """Replicas answer for one another, so they must be asked for one thing in one way."""
    (first_where, first), *others = replicas
    line = findings.file.line_of(first_where)
    for where, endpoint in others:
        for name, words in (("model", "model"), ("client_type", "client type")):
            theirs, ours = getattr(endpoint, name), getattr(first, name)
            if theirs != ours:
                findings.add(
                    where,
                    f"this replica of {first.alias!r} has the {words} {theirs!r}, and the one in line {line} "
                    f"has {ours!r}; replicas must share it.",
                )


def merge_replicas(replicas: Sequence[Endpoint]) -> Endpoint:
    """One endpoint that represents all of them."""
    first = replicas[0]
    if len(replicas) == 1:
        return first
    shared = {
        name: value
        for name, value in first.headers.items()
        if all((name, value) in each.headers.items() for each in replicas)
    }
    differing = {
        name: None
        for name in SHARED_FIELDS
        if any(getattr(each, name) != getattr(first, name) for each in replicas)
    }
    return msgspec.structs.replace(first, headers=shared, replicas=tuple(replicas), **differing)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
