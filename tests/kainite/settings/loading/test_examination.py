"""Reading settings files: the grammar, every problem at once, and what follows from what."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import SettingsError
from kainite.settings import InitialPosition, Settings, UnknownKey, UowOrder, examine, load
from kainite.settings.keys.table import KEYS
from kainite.settings.loading.examination import nearest

MINIMAL = {"applicationName": "app", "streamName": "orders", "executableName": "python child.py"}
ARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/from-arn"


def write(folder: Path, **properties: str) -> Path:
    path = folder / "app.properties"
    path.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()), encoding="latin-1")
    return path


def load_with(folder: Path, **properties: str) -> Settings:
    return load(write(folder, **MINIMAL | properties))


def problems_with(folder: Path, **properties: str) -> tuple[str, ...]:
    return examine(write(folder, **MINIMAL | properties)).problems


def test_a_byte_order_mark_and_other_line_ends_are_no_part_of_any_key(tmp_path: Path) -> None:
    path = write(tmp_path, **MINIMAL)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))

    assert load(path).leases.application == "app"
    assert load(path).unknown == ()


def test_three_keys_are_enough_and_the_rest_follows_from_them(tmp_path: Path) -> None:
    settings = load_with(tmp_path)

    assert settings.leases.table == "app"
    assert settings.log.table == "app-log"
    assert settings.log.owner == settings.leases.worker_id
    assert settings.child.command == ("python", "child.py")
    assert not settings.log.enabled


def test_two_workers_without_a_name_get_different_ones(tmp_path: Path) -> None:
    assert load_with(tmp_path).leases.worker_id != load_with(tmp_path).leases.worker_id


def test_times_are_milliseconds_in_the_file_and_seconds_in_the_program(tmp_path: Path) -> None:
    settings = load_with(tmp_path, failoverTimeMillis="2500", uowGraceMillis="5", timeoutInSeconds="30")

    assert settings.leases.failover == 2.5
    assert settings.uow.grace == 0.005
    assert settings.child.reply_timeout == 30.0


def test_every_problem_is_named_in_one_error(tmp_path: Path) -> None:
    path = write(tmp_path, maxRecords="10001", unitsOfWork="maybe", failoverTimeMillis="1s", uowOrder="any")

    with pytest.raises(SettingsError) as raised:
        load(path)

    message = str(raised.value)
    assert "\n" not in message
    assert str(path) in message
    for key in (*MINIMAL, "maxRecords", "unitsOfWork", "failoverTimeMillis", "uowOrder"):
        assert key in message


@pytest.mark.parametrize("required", sorted(MINIMAL))
def test_a_blank_value_is_as_good_as_none(tmp_path: Path, required: str) -> None:
    assert [problem.partition(" ")[0] for problem in problems_with(tmp_path, **{required: "  "})] == [required]


def test_the_grammar_is_that_of_java(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_bytes(
        b"! a comment\n# another\napplicationName:app\nstreamName first\nstreamName=last\\\n   -one \n"
        b"executableName = python \\u0061.py\nworkerId=M\xfcller\n"
    )
    settings = load(path)

    assert settings.stream.name == "last-one"
    assert settings.child.command == ("python", "a.py")
    assert settings.leases.worker_id == "Müller"


def test_a_command_may_quote_words_with_spaces(tmp_path: Path) -> None:
    assert load_with(tmp_path, executableName='"/opt/my tools/run"   -v').child.command == ("/opt/my tools/run", "-v")
    assert "executableName" in problems_with(tmp_path, executableName='python "child.py')[0]


@pytest.mark.parametrize("contents", [b"applicationName = \\u12", b"\\uzzzz=1"])
def test_a_broken_escape_is_an_error_in_the_settings(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "app.properties"
    path.write_bytes(contents)

    with pytest.raises(SettingsError, match=r"app\.properties"):
        load(path)


@pytest.mark.parametrize("contents", [b"applicationName = a\0b", "streamName = s".encode("utf-16")])
def test_a_file_that_is_no_text_is_an_error(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "app.properties"
    path.write_bytes(contents)

    with pytest.raises(SettingsError, match=r"app\.properties: is no text, or UTF-16"):
        load(path)


def test_a_key_that_stands_there_twice_is_a_surprise_where_the_values_differ(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text("streamName=old\napplicationName=app\nexecutableName=cat\napplicationName=app\nstreamName=new\n")

    settings = load(path)

    assert settings.stream.name == "new"
    assert settings.warnings == ("streamName: stands in the file more than once; the last one counts, as in Java",)


def test_a_file_that_cannot_be_read_says_which_and_why(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nowhere\.properties: No such file"):
        load(tmp_path / "nowhere.properties")
    with pytest.raises(SettingsError, match="directory"):
        load(tmp_path)


def test_unknown_keys_are_no_error_but_are_named_with_the_nearest_known_one(tmp_path: Path) -> None:
    settings = load_with(tmp_path, maxRecord="5", RetrievalMode="POLLING", somethingElse="1")

    assert settings.unknown == (
        UnknownKey("maxRecord", "maxRecords"),
        UnknownKey("RetrievalMode", "retrievalMode"),
        UnknownKey("somethingElse", None),
    )
    assert settings.stream.max_records == 10_000


def test_keys_of_kcl_without_effect_are_known(tmp_path: Path) -> None:
    settings = load_with(tmp_path, maxActiveThreads="4", **{"kinesisClient.overrideConfiguration.retryPolicy": "x"})

    assert settings.ignored == ("maxActiveThreads", "kinesisClient.overrideConfiguration.retryPolicy")
    assert settings.unknown == ()


def test_a_typing_error_finds_each_key_again() -> None:
    for key in KEYS:
        if len(key.name) > 8:
            assert nearest(key.name[:3] + key.name[4:]) == key.name


def test_the_arn_wins_over_the_name_and_brings_its_region(tmp_path: Path) -> None:
    settings = load_with(tmp_path, streamArn=ARN)

    assert (settings.stream.name, settings.aws.region) == ("from-arn", "eu-west-1")
    elsewhere = load_with(tmp_path, streamArn=ARN, regionName="us-west-2")
    assert (elsewhere.aws.region, elsewhere.aws.kinesis.region) == ("us-west-2", "eu-west-1")
    assert load_with(tmp_path, streamArn=ARN, streamName=" ").stream.name == "from-arn"


def test_a_moment_to_read_from_wins_over_an_end_of_the_stream(tmp_path: Path) -> None:
    settings = load_with(tmp_path, initialPositionInStream="trim_horizon", initialPositionInStreamExtended="1700000000")

    assert settings.stream.initial_position is InitialPosition.AT_TIMESTAMP
    assert settings.stream.initial_timestamp == 1_700_000_000.0
    assert load_with(tmp_path, initialPositionInStream="trim_horizon").stream.initial_position == "TRIM_HORIZON"
    assert problems_with(tmp_path, initialPositionInStream="AT_TIMESTAMP")


def test_the_other_spelling_of_the_worker_gives_way(tmp_path: Path) -> None:
    assert load_with(tmp_path, workerIdentifier="a").leases.worker_id == "a"
    assert load_with(tmp_path, workerIdentifier="a", workerId="b").leases.worker_id == "b"


def test_relative_paths_start_from_the_files_folder(tmp_path: Path) -> None:
    settings = load_with(tmp_path, catalogueFile="c.json", auditTrail="/abs", target="sqlite:///data/t.db")

    assert settings.uow.catalogue_file == tmp_path / "c.json"
    assert settings.log.audit_trail == Path("/abs")
    assert settings.apply.target == f"sqlite:///{tmp_path}/data/t.db"


def test_a_password_is_neither_in_messages_nor_in_repr(tmp_path: Path) -> None:
    settings = load_with(tmp_path, target="postgresql://u:geheim@host/db")

    assert settings.apply.target == "postgresql://u:geheim@host/db"
    assert "geheim" not in repr(settings)
    assert "geheim" not in problems_with(tmp_path, target="oracle://u:geheim@host/db")[0]


def test_settings_that_contradict_each_other_are_a_problem(tmp_path: Path) -> None:
    assert "uowOrder=time needs" in problems_with(tmp_path, uowOrder="time")[0]
    assert not problems_with(tmp_path, uowOrder="time", uowEnd="watermark")


def test_times_follow_from_the_one_that_has_a_key(tmp_path: Path) -> None:
    plain = load_with(tmp_path)
    assert (plain.log.heartbeat, plain.log.poll, plain.fleet.ping) == (3.0, 0.25, 3.0)
    assert plain.child.restart_backoff_max == 30.0

    other = load_with(tmp_path, logLeaseMillis="2000", fleetPingTimeoutMillis="1000", taskBackoffTimeMillis="40000")
    assert (other.log.heartbeat, other.log.poll, other.fleet.ping) == (0.6, 0.05, 0.5)
    assert other.child.restart_backoff_max == 40.0
    assert load_with(tmp_path, logLeaseMillis="3600000").log.poll == 1.0


def test_a_key_that_is_a_constant_now_is_answered_and_has_no_effect(tmp_path: Path) -> None:
    settings = load_with(tmp_path, logBatchBytes="4096", logHeartbeatMillis="50")

    assert settings.log.batch_bytes == 256 * 1024
    assert settings.log.heartbeat == 3.0
    assert settings.unknown == ()
    assert settings.warnings == (
        "logHeartbeatMillis is a constant now (0.3 of logLeaseMillis); remove it",
        "logBatchBytes is a constant now (262144); remove it",
    )


def test_nothing_starts_with_a_constant_that_would_change_what_the_file_means(tmp_path: Path) -> None:
    assert problems_with(tmp_path, loaderMarkerEop=";", uowDedupWindow="9") == (
        "uowDedupWindow is a constant now (2000000); remove it",
        "loaderMarkerEop is a constant now (that of markerEop); remove it",
    )


@pytest.mark.parametrize("spelling", ["KAINITE_LOG_POLL_MILLIS", "KAINITE_LOGPOLLMILLIS"])
def test_a_constant_is_answered_wherever_it_is_set(tmp_path: Path, spelling: str) -> None:
    path = write(tmp_path, **MINIMAL)

    by_option = examine(path, options=["--log-poll-millis", "5"], environment={})
    by_variable = examine(path, environment={spelling: "5"})

    assert by_option.warnings == by_variable.warnings
    assert "logPollMillis is a constant now" in by_option.warnings[0]


def test_choices_may_be_written_in_either_case(tmp_path: Path) -> None:
    assert load_with(tmp_path, uowOrder="DENSE").uow.order is UowOrder.DENSE


@given(
    st.dictionaries(
        st.sampled_from([key.name for key in KEYS]),
        st.one_of(st.text(max_size=40), st.integers().map(str), st.sampled_from(["true", "LATEST", ARN, "a,b"])),
        max_size=8,
    )
)
def test_whatever_stands_in_a_file_gives_settings_or_problems(
    tmp_path_factory: pytest.TempPathFactory, properties: dict[str, str]
) -> None:
    path = tmp_path_factory.mktemp("any") / "app.properties"
    path.write_bytes("".join(f"{key}={value}\n" for key, value in properties.items()).encode("utf-8", "surrogatepass"))

    try:
        found = examine(path)
    except SettingsError:
        return  # a broken escape
    assert (found.settings is None) == bool(found.problems)


def test_a_command_asks_only_for_the_keys_that_it_uses(tmp_path: Path) -> None:
    file = tmp_path / "app.properties"
    file.write_text("applicationName = orders\ntarget = sqlite:///x\n")
    assert examine(file, environment={}, needs=("applicationName",)).problems == ()
    assert load(file, needs=("applicationName",)).log.table == "orders-log"
    file.write_text("streamName = s\nextractorName = cat\n")
    assert examine(file, environment={}, needs=("streamName", "extractorName")).problems == ()
    (problem,) = examine(file, environment={}).problems
    assert problem.startswith("applicationName is missing")
