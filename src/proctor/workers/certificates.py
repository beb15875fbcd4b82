"""Certificates for one conversation: made for it, known to both ends beforehand, trusted for nothing else.

Knows nothing of sockets.
"""

from __future__ import annotations

import datetime
import ssl
import tempfile
from pathlib import Path

import msgspec

from proctor.errors import ConfigError

VALID_DAYS = 30
CLOCK_DAYS = 1
"""How far the clocks of two machines may differ."""


class Certificate(msgspec.Struct, frozen=True):
    """A self-signed certificate and its key, both as PEM. The key never leaves its process."""

    public: str
    key: str


def make_certificate() -> Certificate:
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError as error:
        raise ConfigError(
            "cryptography is not installed; install it with `pip install 'proctor[ray]'`."
        ) from error
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "proctor worker link")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=CLOCK_DAYS))
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public = made.public_bytes(serialization.Encoding.PEM).decode()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certificate(public, private.decode())


def server_context(own: Certificate) -> ssl.SSLContext:
    """Of the end that listens; `trust` adds the certificates it accepts."""
    return build_context(ssl.PROTOCOL_TLS_SERVER, own)


def client_context(own: Certificate, theirs: str) -> ssl.SSLContext:
    """Of the end that connects, to one peer only."""
    context = build_context(ssl.PROTOCOL_TLS_CLIENT, own)
    trust(context, theirs)
    return context


def build_context(protocol: int, own: Certificate) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # the certificate itself is pinned, so its name adds nothing
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # a pinned certificate is its own root
    with tempfile.TemporaryDirectory(prefix="proctor-link-") as folder:  # ssl reads keys from files only
        file = Path(folder, "own.pem")
        file.touch(mode=0o600)
        file.write_text(own.key + own.public)
        context.load_cert_chain(file)
    return context


def trust(context: ssl.SSLContext, public: str) -> None:
    context.load_verify_locations(cadata=public)


def is_pinned(connection: ssl.SSLObject | None, public: str) -> bool:
    """Whether the peer showed just this certificate."""
    shown = None if connection is None else connection.getpeercert(binary_form=True)
    return shown is not None and shown == ssl.PEM_cert_to_DER_cert(public)
