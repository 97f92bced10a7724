"""How a field of a section states its key."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import pytest

from kainite.settings.key import METADATA, Reload, SectionTitle, SettingKey, kcl, kcl_key, own, own_key, section
from kainite.settings.kinds.values import millis, text, whole

NAME, TIMES, WAIT = text("a name"), whole(1), millis(1)


@dataclass(frozen=True, slots=True)
class Sample:
    """A section with each form of a field."""

    name: str = field(metadata=kcl_key("name", NAME, Reload.RESTART, "The name.", required=True))
    other: str = field(metadata=own_key("other", NAME, Reload.NOW, "Another name.", otherwise="the name"))
    times: int = kcl("times", TIMES, Reload.NEXT_CHILD, "How often.", default=3, aliases=("often",))
    wait: float = own("wait", WAIT, Reload.NEXT_JOB, "How long.", default=0.5, secret=True)
    fixed: int = 7


KEYS = {each.name: each.metadata.get(METADATA) for each in dataclasses.fields(Sample)}


def test_a_field_without_a_default_must_be_given_and_the_others_have_theirs() -> None:
    sample = Sample("a", "b")

    assert (sample.times, sample.wait, sample.fixed) == (3, 0.5, 7)
    with pytest.raises(TypeError):
        Sample()  # type: ignore[call-arg]


def test_the_fields_state_their_keys_and_a_constant_states_none() -> None:
    assert {
        "name": SettingKey("name", NAME, Reload.RESTART, "The name.", is_kcls=True, required=True),
        "other": SettingKey("other", NAME, Reload.NOW, "Another name.", is_kcls=False, otherwise="the name"),
        "times": SettingKey("times", TIMES, Reload.NEXT_CHILD, "How often.", is_kcls=True, aliases=("often",)),
        "wait": SettingKey("wait", WAIT, Reload.NEXT_JOB, "How long.", is_kcls=False),
        "fixed": None,
    } == KEYS


def test_a_secret_is_left_out_of_repr() -> None:
    assert repr(Sample("a", "b")) == "Sample(name='a', other='b', times=3, fixed=7)"


def test_a_section_has_a_title_and_words_for_its_keys() -> None:
    assert section("Some keys", service="Kinesis") == {METADATA: SectionTitle("Some keys", {"service": "Kinesis"})}


def test_the_daemon_follows_what_needs_no_start() -> None:
    assert [reload for reload in Reload if reload.is_followed] == [Reload.NOW, Reload.NEXT_CHILD]
