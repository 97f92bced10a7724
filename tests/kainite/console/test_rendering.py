"""Every text on its way into a page: escaped, without secrets, without characters that lie."""

from __future__ import annotations

from markupsafe import Markup

from kainite.base.redaction import forget, learn
from kainite.console.rendering import ago, at, environment, link


def rendered(template: str, **values: object) -> str:
    return environment("/k").from_string(template).render(**values)


def test_what_comes_from_outside_is_text() -> None:
    text = "<script>\u202eexe \x1b[2J password=geheim"
    assert rendered("{{ text }}", text=text) == "&lt;script&gt;\\u202eexe \\x1b[2J password=***"
    assert rendered('<a title="{{ text }}">', text='" onclick="x') == '<a title="&#34; onclick=&#34;x">'
    assert rendered("{{ missing }}{{ number }}", missing=None, number=3) == "3"


def test_values_of_rows_keep_what_looks_like_a_secret_and_lose_a_known_one() -> None:
    learn(["known-secret"])
    try:
        assert rendered("{{ text|row }}", text="token=x <known-secret>") == "token=x &lt;***&gt;"
    finally:
        forget()


def test_addresses_are_quoted_piece_by_piece() -> None:
    assert link("/k", "a/b", "unit", uow='"><x>&', status=None) == Markup("/k/a%2Fb/unit?uow=%22%3E%3Cx%3E%26")
    assert link("", "app", "") == "/app/"


def test_times_and_ages() -> None:
    assert "1970-01-01 00:00:01.005" in at(1005)
    assert at(None) == "–"
    assert [ago(seconds) for seconds in (0.04, 9.9, 75, 130, 8_000, 200_000)] == [
        "0.0 s",
        "9.9 s",
        "75 s",
        "2 min",
        "2 h",
        "2 d",
    ]
