"""The environment and the command line: relaxed spelling, and what wins over what."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.errors import SettingsError
from kainite.settings import Examination, examine
from kainite.settings.keys.table import KCL_KEYS
from kainite.settings.loading.overrides import (
    NOT_BARE,
    SPELLINGS,
    environment_name,
    from_environment,
    from_options,
    option_name,
    relaxed,
)

FILE = "applicationName=app\nstreamName=from-file\nexecutableName=python child.py\n"


def examined(folder: Path, environment: dict[str, str], *options: str, more: str = "") -> Examination:
    path = folder / "app.properties"
    path.write_text(FILE + more)
    return examine(path, options=options, environment=environment)


def test_no_two_keys_agree_when_case_and_separators_do_not_count() -> None:
    assert len({relaxed(spelling) for spelling in SPELLINGS}) == len(SPELLINGS)
    assert len({environment_name(spelling) for spelling in SPELLINGS}) == len(SPELLINGS)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("streamName", "STREAM_NAME"),
        ("dynamoDBEndpoint", "DYNAMO_DB_ENDPOINT"),
        ("AwsCredentialsProvider", "AWS_CREDENTIALS_PROVIDER"),
        ("kinesisClient.region", "KINESIS_CLIENT_REGION"),
    ],
)
def test_the_environment_spells_keys_in_capitals(key: str, name: str) -> None:
    assert environment_name(key) == name


@given(st.sampled_from(SPELLINGS), st.text(min_size=1).filter(str.strip), st.booleans())
def test_every_key_comes_back_from_each_spelling(key: str, text: str, joined: bool) -> None:
    option = option_name(key)
    words = (f"{option}={text}",) if joined else (option, text)
    in_environment, _ = from_environment({f"KAINITE_{environment_name(key)}": text})

    assert {name: given.text for name, given in in_environment.items()} == {key: text.strip()}
    if joined or not text.startswith("--"):
        assert {name: given.text for name, given in from_options(words)[0].items()} == {key: text.strip()}
        assert from_options([f"--{key}={text}"])[0] == from_options(words)[0]


@given(st.sampled_from([key.name for key in KCL_KEYS if environment_name(key.name) not in NOT_BARE]))
def test_keys_of_kcl_need_no_prefix(key: str) -> None:
    found, _ = from_environment({environment_name(key): "x"})

    assert [(name, given.origin) for name, given in found.items()] == [(key, f"environment {environment_name(key)}")]


@pytest.mark.parametrize("name", ["TABLE_NAME", "WORKER_ID", "TARGET", "STREAMNAME", "stream_name", "PATH"])
def test_names_that_other_programs_use_are_left_to_them(name: str) -> None:
    assert from_environment({name: "x"}) == ({}, ())


@given(st.lists(st.text(max_size=12), max_size=6))
def test_whatever_stands_on_the_command_line_is_taken_apart_or_refused(words: list[str]) -> None:
    try:
        found, positional = from_options(words)
    except SettingsError:
        return
    assert len(found) + len(positional) <= len(words)


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    environment = {"STREAM_NAME": "bare", "KAINITE_STREAM_NAME": "prefixed", "MAX_RECORDS": "5"}
    found = examined(tmp_path, environment, "--stream-name", "option", more="maxRecords=7\nfailoverTimeMillis=3000\n")
    settings = found.settings_or_raise()

    assert (settings.stream.name, settings.stream.max_records, settings.leases.failover) == ("option", 5, 3.0)
    assert found.origins["streamName"] == "command line"
    assert found.origins["maxRecords"] == "environment MAX_RECORDS"
    assert found.origins["failoverTimeMillis"] == "file"
    prefixed = examined(tmp_path, {name: environment[name] for name in ("STREAM_NAME", "KAINITE_STREAM_NAME")})
    assert prefixed.settings_or_raise().stream.name == "prefixed"


def test_another_spelling_of_a_key_wins_over_the_file_too(tmp_path: Path) -> None:
    found = examined(tmp_path, {}, "--worker-identifier", "b", more="workerId=a\n")

    assert found.settings_or_raise().leases.worker_id == "b"


def test_no_file_is_needed_when_nothing_is_missing_without_it() -> None:
    environment = {"APPLICATION_NAME": "app", "STREAM_NAME": "orders"}
    settings = examine(None, options=["--executable-name", "python child.py"], environment=environment)

    assert settings.settings_or_raise().child.command == ("python", "child.py")
    assert "executableName is missing" in examine(None, environment=environment).problems[0]


def test_a_variable_of_another_program_never_changes_the_application_in_silence(tmp_path: Path) -> None:
    found = examined(tmp_path, {"APPLICATION_NAME": "shop"})

    assert "APPLICATION_NAME" in found.problems[0]
    assert not examined(tmp_path, {"APPLICATION_NAME": "app"}).problems
    assert examined(tmp_path, {"KAINITE_APPLICATION_NAME": "shop"}).settings_or_raise().leases.application == "shop"
    assert examined(tmp_path, {"STREAM_NAME": "s"}).warnings == (
        "streamName: environment STREAM_NAME wins over the file",
    )


def test_a_wrong_value_says_where_it_stands(tmp_path: Path) -> None:
    found = examined(tmp_path, {"MAX_RECORDS": "many"}, "--failover-time-millis=-1")

    assert "maxRecords (environment MAX_RECORDS): must be" in "; ".join(found.problems)
    assert "failoverTimeMillis (command line): must be" in "; ".join(found.problems)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--stream-nmae", "x"), "did you mean --stream-name?"),
        (("--nothing-like-it", "x"), "no option --nothing-like-it"),
        (("-x",), "no option -x"),
        (("--stream-name",), "--stream-name needs a value"),
        (("--stream-name", "--max-records", "5"), "--stream-name needs a value"),
    ],
)
def test_an_unknown_option_or_one_without_a_value_is_an_error(words: tuple[str, ...], says: str) -> None:
    with pytest.raises(SettingsError, match=says.replace("?", r"\?")):
        from_options(words)


def test_a_name_with_our_prefix_that_is_no_key_is_named(tmp_path: Path) -> None:
    unknown = examined(tmp_path, {"KAINITE_STREAM_NMAE": "x", "KAINITE_PORT_80_TCP": "y"}).unknown

    assert [entry.key for entry in unknown] == ["KAINITE_STREAM_NMAE", "KAINITE_PORT_80_TCP"]


def test_a_key_of_one_stream_is_spelled_as_in_the_file(tmp_path: Path) -> None:
    own = "stream.My-or.ders.maxRecords"
    path = tmp_path / "app.properties"
    path.write_text(
        f"applicationName=app\nstreamNames=My-or.ders, b\nexecutableName=c\n{own}=1\nstream.b.maxRecords=1\n"
    )
    found = examine(
        path, options=(f"--{own}=3",), environment={f"KAINITE_{own}": "2", "KAINITE_stream.b.maxRecords": "2"}
    )
    assert {name: list(values.values()) for name, values in found.settings_or_raise().of_streams.items()} == {
        "My-or.ders": [3], "b": [2],
    }  # fmt: skip
    assert found.unknown == ()
    _, strangers = from_environment({"KAINITE_STREAM.b.maxRecords": "2", "stream.b.maxRecords": "2"})
    assert strangers == ("KAINITE_STREAM.b.maxRecords",)
    with pytest.raises(SettingsError, match=r"there is no option --stream\.b\.applicationName"):
        from_options(("--stream.b.applicationName=x",))
