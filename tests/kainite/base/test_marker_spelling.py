r"""Markers as text, and how workers are told of them."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.base.marker_spelling import escape, unescape
from kainite.base.markers import Batching
from kainite.child.markers.start_parameters import start_parameters
from kainite.settings import MarkersSettings
from kainite.settings.placeholders import check_template


@given(st.binary())
def test_every_marker_reads_back_as_it_is_spelled(marker: bytes) -> None:
    spelled = escape(marker)
    assert unescape(spelled) == marker
    assert spelled.isascii()
    assert not any(character.isspace() or not character.isprintable() for character in spelled)


@given(st.text())
def test_any_text_is_a_marker_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert unescape(escape(unescape(text))) == unescape(text)


@pytest.mark.parametrize(
    ("text", "marker"),
    [
        (r"\n", b"\n"),
        (r"\x06", b"\x06"),
        (r"\X", None),
        ("\\", None),
        (r"\x6", None),
        (r"\0", b"\0"),
        ("é", b"\xc3\xa9"),
    ],
)
def test_spellings(text: str, marker: bytes | None) -> None:
    if marker is None:
        with pytest.raises(ValueError, match="is none of"):
            unescape(text)
    else:
        assert unescape(text) == marker


def test_a_shell_reads_the_spelling_as_it_is_meant() -> None:
    every_byte = bytes(range(256))
    done = subprocess.run(["bash", "-c", 'printf %b "$1"', "_", escape(every_byte)], capture_output=True, check=True)
    assert done.stdout == every_byte


def test_a_worker_is_told_by_its_environment() -> None:
    arguments, environment = start_parameters(replace(MarkersSettings(), batching=Batching.WORKER, batch_size=7))
    assert arguments == ()
    assert environment == {
        "KAINITE_EOM": "\\n",
        "KAINITE_EOP": "\\x00",
        "KAINITE_EOB": "\\x17",
        "KAINITE_BNC": "\\x06",
        "KAINITE_BATCHING": "worker",
        "KAINITE_BATCH_SIZE": "7",
    }


def test_a_worker_is_told_as_the_templates_say() -> None:
    settings = replace(
        MarkersSettings(eop=b"EOP"),
        arguments=("-e", "{eom}", '-E={eop}{"a":1}'),
        environment=(("X", "{bnc}-{batch_size}"),),
    )
    assert start_parameters(settings) == (("-e", "\\n", '-E=EOP{"a":1}'), {"X": "\\x06-100"})


def test_a_placeholder_that_there_is_not_is_refused() -> None:
    check_template('{eom} {"a": {}} {A}')
    with pytest.raises(ValueError, match=r"\{eof\} is none of \{eom\}, \{eop\}"):
        check_template("{eof}")
