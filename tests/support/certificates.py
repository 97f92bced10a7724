"""Authorities and certificates for tests of TLS."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate's files."""

    certificate: Path
    key: Path


class Authority:
    """An authority that signs certificates for 127.0.0.1.

    Args:
        folder: where the files go.
        name: of the authority.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._name = name
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.trust = folder / f"{name}.pem"
        certificate = _signed(name, self._key.public_key(), name, self._key, ca=True)
        self.trust.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def sign(self, name: str, ends: datetime.timedelta = DAY) -> Certificate:
        """Returns a new certificate for a server or a client, which began a day ago."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = _signed(name, key.public_key(), self._name, self._key, ca=False, ends=ends)
        found = Certificate(self._folder / f"{name}.crt", self._folder / f"{name}.key")
        found.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return found


def _signed(
    name: str,
    key: ec.EllipticCurvePublicKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    ca: bool,
    ends: datetime.timedelta = DAY,
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + ends)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .sign(issuer_key, hashes.SHA256())
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
