"""Certificate authorities of tests: each signs one server certificate, and nobody outside the tests believes them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from lanes.providers import authorities_digest

NAMES = ("api.acme.example", "*.wild.example", "10.0.0.5", "127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority of this test, and a server that has a certificate of it."""

    certificate: Path
    server: Path

    @property
    def digest(self) -> str:
        """The digest of a store that holds this authority alone."""
        return authorities_digest([ssl.PEM_cert_to_DER_cert(self.certificate.read_text("ascii"))])

    def context(self) -> ssl.SSLContext:
        """A client's settings that believe this authority alone."""
        return ssl.create_default_context(cafile=str(self.certificate))

    def server_context(self) -> ssl.SSLContext:
        """The settings of the server that has its certificate."""
        settings = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        settings.load_cert_chain(self.server)
        return settings


def make_authority(folder: Path, name: str) -> Authority:
    """Make one, with its two files in a folder."""
    start, day = datetime(2020, 1, 1, tzinfo=UTC), timedelta(days=1)
    keys = [ec.generate_private_key(ec.SECP256R1()) for _ in range(2)]
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"authority {name}")])
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "server")])
    names = [x509.IPAddress(ip_address(each)) if each[0].isdigit() else x509.DNSName(each) for each in NAMES]
    identifier = x509.SubjectKeyIdentifier.from_public_key(keys[0].public_key())
    made = []
    for whose, key in ((issuer, keys[0]), (subject, keys[1])):
        is_authority = whose == issuer
        builder = (
            x509.CertificateBuilder(
                issuer, whose, key.public_key(), x509.random_serial_number(), start, start + 99999 * day
            )
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        )
        if is_authority:
            usage = x509.KeyUsage(*[position in {5, 6} for position in range(9)])
            builder = builder.add_extension(identifier, critical=False).add_extension(usage, critical=True)
        else:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        made.append(builder.sign(keys[0], hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    secret = keys[1].private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / f"{name}.pem").write_bytes(made[0])
    (folder / f"{name}-server.pem").write_bytes(made[1] + secret)
    return Authority(folder / f"{name}.pem", folder / f"{name}-server.pem")
