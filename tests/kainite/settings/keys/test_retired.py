"""Keys that are constants now."""

from __future__ import annotations

import dataclasses

import pytest

from kainite.settings.keys.retired import RETIRED, RETIRED_KEYS, RetiredKey, retired
from kainite.settings.keys.table import KEY_BY_SPELLING, KEYS, SECTIONS
from kainite.settings.keys.without_effect import why_without_effect

FOLLOWING = {
    ("log", "owner"),
    ("log", "heartbeat"),
    ("log", "poll"),
    ("fleet", "ping"),
    ("child", "restart_backoff_max"),
    ("stream", "created"),  # stream.NAME.creationEpoch alone
    ("log", "targets"),  # target.NAME and target.NAME.tables
}
"""Fields without a key that follow from others."""


def test_a_retired_key_is_no_key() -> None:
    assert not RETIRED.keys() & KEY_BY_SPELLING.keys()
    assert not [name for name in RETIRED if why_without_effect(name)]
    assert len(RETIRED) == len(RETIRED_KEYS)


def test_the_fields_without_a_key_are_the_constants_of_retired_keys() -> None:
    fields = {(name, field.name) for name, section in SECTIONS.items() for field in dataclasses.fields(section.kind)}
    inner = {tuple(name.split(".")) for name in SECTIONS if "." in name}
    with_keys = {(key.section, key.field) for key in KEYS}

    assert fields - inner - with_keys - FOLLOWING == {(key.section, key.field) for key in RETIRED_KEYS if key.section}


@pytest.mark.parametrize("key", RETIRED_KEYS, ids=lambda key: key.name)
def test_the_answer_names_the_key_and_its_value(key: RetiredKey) -> None:
    assert str(key) == f"{key.name} is a constant now ({key.value}); remove it"
    assert key.value


def test_a_time_is_shown_as_it_was_written() -> None:
    assert RETIRED["logPutIntervalMillis"].value == "20"
    assert RETIRED["fleetRebalanceMillis"].value == "3600000"


def test_only_the_keys_that_are_set_are_answered_each_once() -> None:
    names = {"streamName", "applyPaceMillis", "uowDedupWindow"}

    assert [line.partition(" ")[0] for line in retired(names, refused=False)] == ["applyPaceMillis"]
    assert [line.partition(" ")[0] for line in retired(names, refused=True)] == ["uowDedupWindow"]
