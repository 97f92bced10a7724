"""Sessions and logins that are under way."""

from __future__ import annotations

from kainite.console.sessions import LOGIN_S, MOST_LOGINS, MOST_SESSIONS, SESSION_S, Sessions


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_login_is_taken_once_by_the_browser_that_began_it() -> None:
    sessions = Sessions(Clock())
    login = sessions.begin("/app/units")
    assert sessions.take(login.state, "") is None
    assert sessions.take(login.state, "another") is None
    assert sessions.take("", login.browser) is None
    assert sessions.take(login.state, login.browser) == login
    assert sessions.take(login.state, login.browser) is None
    assert len({login.state, login.nonce, login.verifier, login.browser}) == 4


def test_two_tabs_of_one_browser_log_in_side_by_side() -> None:
    sessions = Sessions(Clock())
    first = sessions.begin("/a")
    second = sessions.begin("/b", first.browser)
    assert first.state != second.state
    for login in (first, second):
        assert sessions.take(login.state, first.browser) == login


def test_a_session_ends_by_a_logout_and_by_time() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    ada, eve = sessions.open("ada"), sessions.open("eve")
    assert (sessions.user(ada), sessions.user(eve), sessions.user(""), sessions.user("ada")) == (
        "ada", "eve", None, None,
    )  # fmt: skip
    sessions.close(ada)
    assert (sessions.user(ada), sessions.user(eve)) == (None, "eve")
    clock.now = SESSION_S - 1
    assert sessions.user(eve) == "eve"
    clock.now = SESSION_S
    assert sessions.user(eve) is None


def test_a_login_takes_no_longer_than_it_may() -> None:
    clock = Clock()
    sessions = Sessions(clock)
    login = sessions.begin("/")
    clock.now = LOGIN_S
    assert sessions.take(login.state, login.browser) is None


def test_who_only_begins_does_not_fill_the_memory() -> None:
    sessions = Sessions(Clock())
    first, user = sessions.begin("/"), sessions.open("ada")
    for _ in range(max(MOST_LOGINS, MOST_SESSIONS)):
        last = sessions.begin("/")
        sessions.open("eve")
    assert sessions.take(first.state, first.browser) is None
    assert sessions.user(user) is None
    assert sessions.take(last.state, last.browser) == last
