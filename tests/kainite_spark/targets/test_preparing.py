"""Names of transactions over several targets."""

from __future__ import annotations

import pytest

from kainite_spark.targets.preparing import (
    TransactionName,
    gid_of,
    gid_prefix,
    log_prefix,
    name_from,
    name_in,
    target_in,
)

NAME = TransactionName(12, 345, "a1b2")
LONG = f"{'table' * 51}/{'partition' * 20}"


@pytest.mark.parametrize("log_partition", ["log/0", LONG, "log/Ü"])
def test_an_identifier_tells_the_transaction_and_fits(log_partition: str) -> None:
    gid = gid_of(log_partition, "n" * 32, TransactionName(2**63, 2**63, "f" * 32))
    assert len(gid.encode()) <= 200
    assert name_in(gid_of(log_partition, "crm", NAME)) == NAME
    assert target_in(gid_of(log_partition, "crm", NAME)) == "crm"


def test_targets_and_logs_have_identifiers_of_their_own() -> None:
    prefixes = {gid_prefix(log, target) for log in ("log/0", "log/1") for target in ("crm", "crm2")}
    assert len(prefixes) == 4
    assert gid_prefix("log/0", "crm").startswith(log_prefix("log/0"))
    assert not gid_of("log/0", "crm2", NAME).startswith(gid_prefix("log/0", "crm"))


@pytest.mark.parametrize("gid", ["", "someone's", "kainite:0:crm:1.1.a", f"{gid_of('log/0', 'crm', NAME)} "])
def test_what_kainite_did_not_make_has_no_name(gid: str) -> None:
    assert name_in(gid) is None
    assert target_in(gid) is None


def test_a_name_reads_back_and_knows_its_fence() -> None:
    assert name_from(str(NAME)) == NAME
    assert NAME.fence == (12, 345)
