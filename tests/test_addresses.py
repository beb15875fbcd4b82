"""Which addresses are on the public internet: one table, for everybody who connects on others' behalf."""

from __future__ import annotations

import asyncio
import socket
from urllib.parse import urlsplit

import pytest

from proctor.runner.internet_proxy import connect_checked
from proctor.runner.internet_proxy import open_internet_proxy as open_proxy
from proctor.server.gateway.outbound import check_endpoint_url, open_public_socket
from proctor.server.problems import InvalidError
from proctor.support.addresses import is_own, is_public, may_connect

SPECIAL = {
    "this network": ("0.0.0.0", "0.0.0.1", "0.255.255.255"),
    "private": ("10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1"),
    "carrier-grade NAT": ("100.64.0.1", "100.100.100.200", "100.127.255.255"),
    "loopback": ("127.0.0.1", "127.255.255.254", "::1"),
    "link-local": ("169.254.0.1", "169.254.169.254", "fe80::1", "febf::1"),
    "metadata of clouds": ("168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"),
    "protocol assignments": ("192.0.0.8", "192.0.0.9", "192.0.0.10", "192.0.0.170", "2001:1::1", "2001:1::3"),
    "documentation": ("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "3fff:fff::1"),
    "AS112": ("192.31.196.1", "192.175.48.1", "2001:4:112::1", "2620:4f:8000::1"),
    "multicast tunnelling": ("192.52.193.1", "2001:3::1"),
    "6to4": ("192.88.99.1", "192.88.99.2", "2002:7f00:1::", "2002:808:808::1"),
    "benchmarking": ("198.18.0.1", "198.19.255.255", "2001:2::1"),
    "multicast": ("224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"),
    "reserved": ("240.0.0.1", "255.255.255.254", "255.255.255.255", "4000::1", "8000::1", "e000::1"),
    "unspecified": ("::",),
    "IPv4 written as IPv6": ("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::ffff:192.88.99.1"),
    "IPv4-compatible": ("::127.0.0.1", "::8.8.8.8", "::ffff:0:8.8.8.8"),
    "NAT64": ("64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "64:ff9b:1::808:808"),
    "Teredo": ("2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"),
    "ORCHID and drones": ("2001:10::1", "2001:20::1", "2001:30::1"),
    "discard-only": ("100::1", "100:0:0:1::1"),
    "segment routing": ("5f00::1",),
    "unique local": ("fc00::1", "fd12:3456::1"),
    "site-local": ("fec0::1", "feff::1"),
    "6bone": ("3ffe::1",),
    "of one link": ("fe80::1%eth0", "2606:4700::1111%eth0", "2606:4700::1111%1"),
    "not written as a resolver does": (
        *(
            "127.1",
            "0x7f000001",
            "2130706433",
            "0177.0.0.1",
            "1.1.1.1.",
            "01.1.1.1",
            "1.1.1.1/32",
            " 1.1.1.1",
        ),
        *(
            "[::1]",
            "[2606:4700::1111]",
            "localhost",
            "localhost.",
            "example.com",
            "",
            "1.1.1.1\0",
            "１.1.1.1",
        ),
    ),
}
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1"),
    *("192.0.1.1", "192.88.98.1", "192.88.100.1", "198.17.255.255", "198.20.0.1", "223.255.255.255"),
    *("2606:4700::1111", "2001:4860:4860::8888", "2001:200::1", "2a00:1450::1", "::ffff:1.1.1.1"),
]


@pytest.mark.parametrize("address", [address for each in SPECIAL.values() for address in each])
def test_an_address_with_a_special_purpose_is_not_public(address: str) -> None:
    assert not is_public(address)
    assert not may_connect(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


def test_this_machines_own_addresses_are_known_without_asking_anybody() -> None:
    assert is_own("127.0.0.1")
    assert is_own("::ffff:127.0.0.1")
    assert not is_own("127.0.0.1.")


def test_a_public_address_of_this_machine_is_not_connected_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """Services that listen on all interfaces trust what comes from their own machine."""
    monkeypatch.setattr("proctor.support.addresses.is_public", lambda _: True)
    assert not may_connect("127.0.0.1")


# Names, in both places that connect for others

SPELLINGS = [
    *("127.1", "0x7f000001", "2130706433", "0177.0.0.1", "localhost", "localhost.", "LOCALHOST", "127.0.0.1"),
    *("[::1]", "[::ffff:127.0.0.1]", "[fec0::1]", "192.88.99.1", "[64:ff9b::7f00:1]", "[::127.0.0.1]"),
    *("[5f00::1]", "192.0.0.9", "[2002:808:808::1]", "0", "①②⑦.0.0.1", "127。0。0。1"),
]


@pytest.mark.parametrize("host", SPELLINGS)
def test_no_spelling_of_an_inside_address_is_taken_as_an_endpoint(host: str) -> None:
    with pytest.raises(InvalidError):
        asyncio.run(check_endpoint_url(f"http://{host}/v1", ()))


@pytest.mark.parametrize("host", [*SPELLINGS, "a\0b", "x" * 300, "%", "[::1%25lo]"])
@pytest.mark.parametrize("method", ["CONNECT", "GET"])
def test_no_spelling_of_an_inside_address_passes_the_outward_proxy(host: str, method: str) -> None:
    target = f"{host}:80" if method == "CONNECT" else f"http://{host}/"
    answer = asyncio.run(ask_proxy(f"{method} {target} HTTP/1.1\r\n\r\n".encode()))
    assert answer.split(b" ")[1] in (b"400", b"403", b"502"), answer


async def ask_proxy(request: bytes) -> bytes:
    async with open_proxy() as path:
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(), 30)
        writer.close()
        return answer


# A name that means one thing to the check and another to the connection


def test_the_proxy_connects_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: every further lookup of the name leads inside."""
    lookups: list[str] = []
    genuine = socket.getaddrinfo

    def rebinding(host: str, port: int, *words: object, **more: object) -> object:
        if host != "rebound.example":
            return genuine(host, port, *words, **more)  # type: ignore[arg-type]
        lookups.append(host)
        address = "127.0.0.2" if len(lookups) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", rebinding)

    async def reach(port: int) -> str:
        target = urlsplit(f"//rebound.example:{port}")
        _, writer = await connect_checked(target, lambda address: address == "127.0.0.2")
        peer: str = writer.get_extra_info("peername")[0]
        writer.close()
        return peer

    with socket.create_server(("0.0.0.0", 0)) as listener:
        assert asyncio.run(reach(listener.getsockname()[1])) == "127.0.0.2"


def test_one_inside_address_among_public_ones_is_enough_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 443)) for address in ("1.1.1.1", "10.0.0.1")
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    answer = asyncio.run(ask_proxy(b"CONNECT mixed.example:443 HTTP/1.1\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 403")
    with pytest.raises(InvalidError):
        asyncio.run(check_endpoint_url("https://mixed.example/v1", ()))


@pytest.mark.parametrize("address", ["fec0::1", "192.88.99.1", "5f00::1", "192.0.0.9", "64:ff9b:1::1"])
def test_no_socket_is_made_for_an_address_inside(address: str) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with pytest.raises(OSError, match="public"):
        open_public_socket((family, socket.SOCK_STREAM, 6, "", (address, 443)))
