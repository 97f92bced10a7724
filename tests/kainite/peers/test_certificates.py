"""The validity that is read from a certificate is the one that a library which knows all of a certificate reads."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given
from hypothesis import strategies as st

from kainite.peers.certificates import Validity, validity_of, validity_of_chain
from support.certificates import DAY, Authority

KEY = ec.generate_private_key(ec.SECP256R1())
MOMENTS = st.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2200, 1, 1), timezones=st.just(datetime.UTC))


def signed(name: str, serial: int, begins: datetime.datetime, ends: datetime.datetime) -> bytes:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(KEY.public_key())
    builder = builder.serial_number(serial).not_valid_before(begins).not_valid_after(ends)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(serialization.Encoding.DER)


@given(st.text("abcäö", min_size=1, max_size=64), st.integers(1, 2**159 - 1), MOMENTS, st.integers(0, 10**6))
def test_validity_is_read_from_any_certificate(name: str, serial: int, begins: datetime.datetime, seconds: int) -> None:
    begins = begins.replace(microsecond=0)
    ends = begins + datetime.timedelta(seconds=seconds)
    assert validity_of(signed(name, serial, begins, ends)) == Validity(begins.timestamp(), ends.timestamp())


@given(st.binary(max_size=200))
def test_bytes_that_are_no_certificate_end_in_an_error_that_is_named(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        validity_of(data)


@given(st.integers(0, 400))
def test_a_certificate_that_is_cut_off_ends_in_an_error_that_is_named(length: int) -> None:
    moment = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    whole = signed("a", 1, moment, moment)
    with pytest.raises((ValueError, IndexError)):
        validity_of(whole[: min(length, len(whole) - 1)])


def test_of_a_chain_the_first_end_counts(tmp_path: Path) -> None:
    authority = Authority(tmp_path, "authority")
    long, short = (authority.sign(name, ends).certificate.read_text() for name, ends in (("a", 9 * DAY), ("b", DAY)))
    found = validity_of_chain(long + "comment\n" + short)
    assert found is not None
    assert found == validity_of_chain(short)
    assert 1.9 * DAY.total_seconds() < found.ends - found.begins < 2.1 * DAY.total_seconds()
    for nothing in ("", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"):
        assert validity_of_chain(nothing) is None
