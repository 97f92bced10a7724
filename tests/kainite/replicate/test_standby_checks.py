"""What is said of a standby's copy of the slot; with real standbys in tests/end_to_end/test_failover_slots.py."""

from __future__ import annotations

from dataclasses import replace

import pytest
from psycopg.conninfo import conninfo_to_dict

from kainite.capture.postgresql.replication import SourceSlot, create_slot
from kainite.replicate.ends import source_session
from kainite.replicate.findings import CheckVerdict
from kainite.replicate.slot import FoundSlot, found_slot
from kainite.replicate.standby_checks import StandbyCopy, each_server, finding_of, look_at_standbys, standbys_of

SLOT = FoundSlot("pgoutput", here=True, active=True, lost=False, lsn=0x2000, held=0, left=None, failover=True)
GOOD = StandbyCopy(is_there=True, ready=True, invalid="", lsn=0x1000, wal=0x2000)
GONE_ON = replace(GOOD, lsn=0x2000, wal=0x9000)


@pytest.mark.parametrize(
    ("copy", "said"),
    [
        (GOOD, "b has slot shop as of 0/1000, 4,096 bytes behind, and lacks 4,096 bytes of the latest WAL"),
        (GONE_ON, "b has slot shop as of 0/2000, 0 bytes behind, and all WAL of the primary"),
        (replace(GOOD, is_there=False), "b has no copy of slot shop"),
        (replace(GOOD, ready=False), "still synchronising"),
        (replace(GOOD, invalid="rows_removed"), "has invalidated its copy of slot shop (rows_removed)"),
        (replace(GOOD, wal=0x1F00), "b lacks 256 bytes of WAL that were extracted"),
    ],
)
def test_a_copy_says_what_a_promotion_would_do(copy: StandbyCopy, said: str) -> None:
    found = finding_of("b", copy, SLOT, "shop", 0x3000)
    assert said in found.found
    assert (found.verdict is CheckVerdict.OK) == (copy in (GOOD, GONE_ON))
    assert (found.verdict is CheckVerdict.OK) != bool(found.mend)


def test_an_address_is_taken_apart_into_its_servers() -> None:
    address = "postgresql://kainite@a:5433,b:5434/shop?target_session_attrs=read-write"
    servers = {host: conninfo_to_dict(url) for host, url in each_server(address)}
    assert {host: (one["host"], one["port"]) for host, one in servers.items()} == {
        "a": ("a", "5433"),
        "b": ("b", "5434"),
    }
    assert {one["target_session_attrs"] for one in servers.values()} == {"any"}
    [(_, url)] = each_server("host=a port=5433")
    assert conninfo_to_dict(url)["port"] == "5433"
    with_addresses = dict(each_server("host=a,b hostaddr=127.0.0.1,127.0.0.2 port=5433"))
    assert conninfo_to_dict(with_addresses["b"])["hostaddr"] == "127.0.0.2"


def test_a_server_that_does_not_answer_is_told_and_one_that_is_no_standby_is_not_spoken_of(source: SourceSlot) -> None:
    with create_slot(source):
        pass
    host = str(conninfo_to_dict(source.url)["host"])
    two = source.url.replace(host, f"{host},/nowhere")
    with source_session(source.url) as connection:
        slot = found_slot(connection, source.slot)
        assert list(look_at_standbys(connection, source.url, slot, source.slot)) == []
        assert list(look_at_standbys(connection, two, None, source.slot)) == []
        [found] = look_at_standbys(connection, two, slot, source.slot)
    assert found.found.startswith("/nowhere does not answer")
    assert standbys_of(source) == ()
    assert found in standbys_of(replace(source, url=two))
    [away] = standbys_of(replace(source, url=source.url.replace(host, "/nowhere")))
    assert away.found.startswith("nobody knows what standbys of the source have: the source: ")
