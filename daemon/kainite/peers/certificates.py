"""Reads from PEM certificates from when to when they are valid. Pure.

Python's :mod:`ssl` tells this only of a certificate that a peer has shown and that was verified. So the few elements of
a certificate's DER that come before its validity are walked over here (RFC 5280, 4.1)::

    Certificate ::= SEQUENCE { TBSCertificate ::= SEQUENCE {
        [0] version OPTIONAL, serialNumber, signature, issuer, validity SEQUENCE { notBefore, notAfter }, … } … }
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_BLOCK: Final = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME = 0xA0, 0x17
_BEFORE_VALIDITY: Final = 3
"""The elements serialNumber, signature and issuer."""


@dataclass(frozen=True, slots=True)
class Validity:
    """When a certificate is valid, in epoch seconds."""

    begins: float
    ends: float


def validity_of_chain(pem: str) -> Validity | None:
    """Returns the validity of the certificate in a file that ends first; None where no certificate can be read.

    Args:
        pem: the contents of a file with a certificate and those that sign it.
    """
    try:
        found = [validity_of(ssl.PEM_cert_to_DER_cert(block)) for block in _BLOCK.findall(pem)]
    except (ValueError, IndexError):
        return None
    return min(found, key=lambda validity: validity.ends, default=None)


def validity_of(der: bytes) -> Validity:
    """Returns when one certificate is valid.

    Raises:
        ValueError, IndexError: the bytes are no certificate.
    """
    (_, certificate), *_ = _elements(der)
    (_, signed), *_ = _elements(certificate)
    parts = [part for part in _elements(signed) if part[0] != _VERSION]
    begins, ends = _elements(parts[_BEFORE_VALIDITY][1])
    return Validity(_time(*begins), _time(*ends))


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields tag and contents of each DER element."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size]), at + size
        if at + length > len(data):
            raise ValueError("an element is longer than what it stands in")
        yield tag, data[at : at + length]
        at += length


def _time(tag: int, text: bytes) -> float:
    form = "%y%m%d%H%M%SZ" if tag == _UTC_TIME else "%Y%m%d%H%M%SZ"
    moment = datetime.strptime(text.decode("ascii"), form).replace(tzinfo=UTC)
    if tag == _UTC_TIME and moment.year >= 2050:  # RFC 5280: two digits from 50 on are of the 20th century
        moment = moment.replace(year=moment.year - 100)
    return moment.timestamp()
