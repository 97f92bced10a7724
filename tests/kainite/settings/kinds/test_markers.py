r"""Settings of the ``markers`` dialect, as files, variables and options spell them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kainite.base.errors import SettingsError
from kainite.base.markers import Mark, Markers
from kainite.settings import Settings, examine

NEEDED = "applicationName=app\nexecutableName=cat\nstreamName=orders\n"


def settings(tmp_path: Path, lines: str = "", *options: str, **environment: str) -> Settings:
    path = tmp_path / "app.properties"
    path.write_text(NEEDED + lines)
    return examine(path, options=options, environment=environment).settings_or_raise()


@pytest.mark.parametrize(
    ("written", "marker"),
    [
        (r"\\x06", b"\x06"),
        (r"\u0006", b"\x06"),
        (r"\\x1e", b"\x1e"),
        (r"\u001e", b"\x1e"),
        (r"\n", b"\n"),
        (r"\\n", b"\n"),
        (r"\\0", b"\0"),
        (r"\u0000", b"\0"),
        ("EOP", b"EOP"),
        (r"EOP\\r\\n", b"EOP\r\n"),
        (r"a\\\\b", b"a\\b"),
        ("§", b"\xc2\xa7"),
        ("  <end>  ", b"<end>"),
    ],
)
def test_natural_spellings_in_a_file(tmp_path: Path, written: str, marker: bytes) -> None:
    path = tmp_path / "app.properties"
    path.write_bytes((NEEDED + f"markerEom=~\nmarkerEop={written}\nmarkerEob=^\nmarkerBnc=?\n").encode("latin-1"))
    read = examine(path, environment={}).settings_or_raise().child.markers
    assert read.markers.using(frozenset(Mark)) == Markers(b"~", marker, b"^", b"?")


def test_variables_and_options_need_no_doubling(tmp_path: Path) -> None:
    read = settings(tmp_path, "", "--marker-eop", r"\x1e", KAINITE_MARKER_EOM=r"\x1f").child.markers
    assert (read.eom, read.eop) == (b"\x1f", b"\x1e")


@pytest.mark.parametrize(
    ("eaten", "hint"), [(r"\x06", r"\\x06"), (r"\x0d\x0a", r"\\x0d\\x0a"), (r"\0", r"\\0"), (r"\a", r"\\a")]
)
def test_an_eaten_backslash_is_recognised(tmp_path: Path, eaten: str, hint: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings(tmp_path, f"markerEop={eaten}\n")
    assert f"write {hint}" in str(raised.value)


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("markerEop=\\\\n\n", "EOM is the same as EOP"),
        ("markerEop=EOP\nmarkerEob=EOPX\nmarkersBatching=supervisor\n", "EOB contains EOP"),
        ("markerEop=\\\\q\n", "is none of"),
        ("markersArguments=-e {eon}\n", "{eon} is none of {eom}"),
        ("markersEnvironment=EOM:{eom}\n", "NAME={eom}"),
        ("markersEnvironment=EOM={eon}\n", "{eon} is none of {eom}"),
        ("markersBatching=both\n", "single, worker, supervisor"),
    ],
)
def test_mistakes_are_one_clear_error(tmp_path: Path, lines: str, problem: str) -> None:
    with pytest.raises(SettingsError) as raised:
        settings(tmp_path, lines)
    assert problem in str(raised.value)
    assert ";" not in str(raised.value).replace("; none may stand", "")


def test_a_worker_without_time_limit_is_noted(tmp_path: Path) -> None:
    path = tmp_path / "app.properties"
    path.write_text(NEEDED + "childProtocol=markers\n")
    noted = [note for note in examine(path, environment={}).notes if "forgets to flush" in note]
    assert len(noted) == 1
    limited = examine(path, options=("--timeout-in-seconds", "60"), environment={})
    assert not [note for note in limited.notes if "forgets to flush" in note]


def test_templates_are_words(tmp_path: Path) -> None:
    read = settings(tmp_path, "markersArguments=-e {eom} 'two words'\nmarkersEnvironment=A={eop} B='x {bnc}'\n")
    assert read.child.markers.arguments == ("-e", "{eom}", "two words")
    assert read.child.markers.environment == (("A", "{eop}"), ("B", "x {bnc}"))
