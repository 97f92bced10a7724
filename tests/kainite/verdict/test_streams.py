"""The check on each of several streams, from the lease table and from what daemons tell."""

from __future__ import annotations

import pytest

from kainite.observe.check import Check, Level
from kainite.verdict.facts import Facts, LeaseFacts
from kainite.verdict.judging import ExitStatus, judge
from kainite.verdict.streams import stream_checks
from support.verdicts import SHARD, daemon, row, well

REFUSED = Check("stream pay", Level.BROKEN, "it is not read: there is no stream", "kainite doctor -p FILE asks")
ARN = "arn:aws:kinesis:eu-west-1:{}:stream/orders"


def facts(*streams: str, rows: tuple[str, ...] = ("1:orders:9",), told: tuple[Check, ...] = ()) -> Facts:
    leases = LeaseFacts(tuple(row(f"{stream}:{SHARD}") for stream in rows))
    return well(leases=leases, streams=streams, daemons=(daemon(checks=[check.as_json() for check in told]),))


def levels(known: Facts) -> dict[str, Level]:
    return {check.name: check.level for check in stream_checks(known)}


def test_an_application_of_one_stream_has_no_check_on_it() -> None:
    assert levels(facts()) == {}


@pytest.mark.parametrize(
    ("stream", "level"),
    [
        ("orders", Level.OK), (ARN.format("1"), Level.OK), (ARN.format("2"), Level.BROKEN), ("order", Level.BROKEN),
        ("pay", Level.BROKEN),
    ],
)  # fmt: skip
def test_a_stream_without_a_lease_is_read_by_nobody(stream: str, level: Level) -> None:
    assert levels(facts(stream)) == {f"stream {stream}": level}


def test_what_a_daemon_tells_of_a_stream_counts_more_than_its_leases_and_ends_the_verdict() -> None:
    known = facts("orders", "pay", rows=("1:orders:9", "1:pay:9"), told=(REFUSED,))
    verdict = judge(known)

    assert levels(known) == {"stream orders": Level.OK, "stream pay": Level.BROKEN}
    assert verdict.status is ExitStatus.BROKEN
    assert (verdict.troubles[0].cause, verdict.next_step) == (REFUSED.cause, "kainite doctor -p app.properties asks")


def test_the_worst_that_several_daemons_tell_counts_also_of_a_stream_that_this_file_does_not_name() -> None:
    milder = Check("stream pay", Level.DEGRADED, "its new shards are not found")
    both = (daemon(checks=[milder.as_json()]), daemon(checks=[REFUSED.as_json()]), daemon(checks=[milder.as_json()]))

    (check,) = stream_checks(well(daemons=both))

    assert (check.level, check.cause) == (Level.BROKEN, REFUSED.cause)


def test_while_the_lease_table_is_not_read_nothing_is_known_of_a_stream() -> None:
    assert levels(well(streams=("orders",), leases=LeaseFacts(error="no such table"))) == {
        "stream orders": Level.UNKNOWN
    }
