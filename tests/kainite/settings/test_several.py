"""Several streams in a settings file: which there are, what each has of its own, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.settings import InitialPosition, Retrieval, Settings, load
from kainite.settings.loading.reload import changes, in_force
from kainite.settings.several import each_stream, is_collected, plain_streams

ARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/pay.ments"


def read(folder: Path, *lines: str, names: str = f"orders, {ARN}") -> Settings:
    path = folder / "app.properties"
    path.write_text("\n".join(["applicationName = app", "executableName = a b", f"streamNames = {names}", *lines]))
    return load(path)


def test_each_stream_has_its_own_keys_and_else_those_of_all(tmp_path: Path) -> None:
    settings = read(
        tmp_path, "maxRecords = 7", "initialPositionInStreamExtended = 100", "stream.orders.maxRecords = 8",
        "stream.pay.ments.initialPositionInStream = TRIM_HORIZON", "stream.pay.ments.executableName = c 'd e'",
        "stream.pay.ments.creationEpoch = 1700000000", "stream.pay.ments.retrievalMode = POLLING",
    )  # fmt: skip
    orders, payments = each_stream(settings)

    assert settings.aws.region == "eu-west-1", "an ARN tells the region"
    assert (orders.stream.name, orders.stream.arn, orders.stream.created) == ("orders", None, None)
    assert (payments.stream.name, payments.stream.arn, payments.stream.created) == ("pay.ments", ARN, 1_700_000_000)
    assert (orders.stream.max_records, payments.stream.max_records) == (8, 7)
    assert (orders.stream.initial_position, orders.stream.initial_timestamp) == (InitialPosition.AT_TIMESTAMP, 100)
    assert (payments.stream.initial_position, payments.stream.initial_timestamp) == (InitialPosition.TRIM_HORIZON, None)
    assert (orders.child.command, payments.child.command) == (("a", "b"), ("c", "d e"))
    assert payments.stream.retrieval is Retrieval.POLLING


def test_a_stream_without_units_of_work_is_plain_beside_others(tmp_path: Path) -> None:
    settings = read(tmp_path, "unitsOfWork = true", "stream.pay.ments.unitsOfWork = false")
    orders, payments = "1:orders:5:shardId-0", f"{ARN.split(':')[4]}:pay.ments:5:shardId-0"

    assert [each.log.enabled for each in each_stream(settings)] == [True, False]
    assert plain_streams(settings) == (ARN,)
    assert [is_collected(settings, shard) for shard in (orders, payments, "1:pay.ments:5:shardId-0")] == [
        True, False, True,
    ]  # fmt: skip
    none = read(tmp_path)
    assert (plain_streams(none), is_collected(none, orders)) == ((), False)


def test_one_stream_is_as_ever(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text("applicationName = app\nexecutableName = a\nstreamName = orders\n")
    settings = load(path)
    assert each_stream(settings) == (settings,)
    assert settings.stream.name == "orders"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("streamName = orders", "streamName and streamNames: set one of them"),
        (f"streamArn = {ARN}", "streamArn and streamNames: set one of them"),
        ("stream.order.maxRecords = 8", "order is not in streamNames"),
        ("stream.orders.maxRecords = many", "stream.orders.maxRecords: must be a whole number"),
        (f"fanoutConfig.consumerArn = {ARN}/consumer/c:1", "is a consumer of one stream"),
        ("stream.orders.unitsOfWork = true", "stream.orders.unitsOfWork needs unitsOfWork=true"),
        (
            "unitsOfWork = true\nstream.orders.unitsOfWork = false\nstream.pay.ments.unitsOfWork = false",
            "false for each stream of streamNames",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, line: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, line)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("orders, orders", "none twice"),
        ("or ders", "each a name or an ARN"),
        (f"{ARN}, {ARN.replace('west', 'north')}", "all streams must be in one"),
    ],
)
def test_streams_that_cannot_be_told_apart_or_read_together_are_refused(tmp_path: Path, names: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        read(tmp_path, names=names)


def test_a_secret_in_a_streams_own_command_is_not_shown(tmp_path: Path) -> None:
    settings = read(tmp_path, "stream.orders.executableName = run --password=geheim")
    assert "geheim" not in repr(settings)


def test_a_reload_takes_a_new_stream_as_written_and_of_others_what_needs_no_start(tmp_path: Path) -> None:
    running = read(
        tmp_path, "workerId = w", "stream.orders.maxRecords = 8", "stream.orders.retrievalMode = POLLING"
    )  # fmt: skip
    fresh = read(
        tmp_path, "workerId = w", "stream.orders.maxRecords = 9", "stream.orders.retrievalMode = FANOUT",
        "stream.more.retrievalMode = FANOUT", names=f"orders, more, {ARN}",
    )  # fmt: skip
    told = {change.key: change.reload.is_followed for change in changes(running, fresh)}
    orders, more, _ = each_stream(in_force(running, fresh))

    assert told == {
        "streamNames": True, "stream.orders.maxRecords": True, "stream.orders.retrievalMode": False,
        "stream.more.retrievalMode": False,
    }  # fmt: skip
    assert (orders.stream.max_records, orders.stream.retrieval) == (9, Retrieval.POLLING)
    assert more.stream.retrieval is Retrieval.FANOUT


def test_a_reload_does_not_go_from_one_stream_to_several_or_back(tmp_path: Path) -> None:
    several = read(tmp_path, "workerId = w", "stream.orders.maxRecords = 8", "regionName = eu-west-1")
    (tmp_path / "app.properties").write_text(
        "applicationName = app\nexecutableName = a b\nstreamName = orders\nworkerId = w\nregionName = eu-west-1\n"
    )
    one = load(tmp_path / "app.properties")

    assert {change.key: change.reload.is_followed for change in changes(several, one)}["streamNames"] is False
    kept = [each.stream for each in each_stream(in_force(several, one))]
    assert kept == [each.stream for each in each_stream(several)]
    assert each_stream(in_force(one, several)) == (one,)
