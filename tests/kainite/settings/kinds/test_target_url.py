"""Addresses of databases that can be read in one way only."""

from __future__ import annotations

from urllib.parse import quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.settings.kinds.target_url import problem_of_database_url

TEXT = st.text().filter(lambda text: "\0" not in text)
SOUND = st.sampled_from(["h", "db.example.com", "10.0.0.1", "[::1]", "[fe80::1%25eth0]", "", "%2Ftmp%2Fsockets"])


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h/d",
        "postgresql://u@h:5432/d",
        "postgresql://u:p@h/d",
        "postgresql://u:p%40ss%2Fw%3Ard@h/d",
        "postgresql://one:1,two:2/d?target_session_attrs=read-write",
        "postgresql:///d?host=/tmp/sockets",
        "postgresql://[::1]:5432/d",
        "postgresql://?service=shop",
        "postgresql://h",
        "postgresql://h/d?options=-csearch_path%3Dsales",
    ],
)
def test_a_sound_address_has_no_problem(url: str) -> None:
    assert problem_of_database_url(url) is None


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("u:geheim%nis@h/d", "begins no percent-encoded character"),
        ("u:geheim%00nis@h/d", "begins no percent-encoded character"),
        ("u:geheim@nis@h/d", "read in two ways before its last @"),
        ("u:geheim/nis@h/d", "read in two ways before its last @"),
        ("u:geheim nis@h/d", "read in two ways before its last @"),
        ("u:geheim:nis@h/d", "read in two ways before its last @"),
        ("u@h:geheimnis/d", "no host names and ports"),
        ("u@h/geheim/nis", "no host names and ports"),
        ("u@h/geheim nis", "no host names and ports"),
        ("u@h/d?geheimnis", "parameter that is not name=value"),
        ("u@h/d?password=geheim=nis", "parameter that is not name=value"),
    ],
)
def test_an_address_that_can_be_read_in_two_ways_is_refused_and_not_quoted(rest: str, problem: str) -> None:
    found = problem_of_database_url(f"postgresql://{rest}")
    assert found is not None
    assert problem in found
    assert "geheim" not in found
    assert "nis" not in found


@given(TEXT, TEXT, SOUND)
def test_what_is_percent_encoded_is_sound_and_reads_back(user: str, password: str, host: str) -> None:
    def encoded(text: str) -> str:
        return quote(text.encode("utf-8", "surrogatepass"), safe="")

    url = f"postgresql://{encoded(user)}:{encoded(password)}@{host}/d"
    assert problem_of_database_url(url) is None
    assert urlsplit(url).password == encoded(password)


@given(st.text())
def test_any_text_is_judged_without_an_error(text: str) -> None:
    problem = problem_of_database_url(f"postgresql://{text}")
    assert problem is None or "percent" in problem
