"""Who is logged in by OpenID Connect, and whose login is under way: in memory, bounded, by random names.

A browser keeps the name of its session in a cookie; what the name stands for is here alone. So nothing is signed, a
logout ends the session wherever its cookie was copied to, and a restart of the console has everybody log in again.

A login that is under way is bound to the browser that began it, by a cookie of its own: an answer of the provider that
somebody else's login has earned logs nobody in.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

SESSION_S: Final = 8 * 3600.0
"""Seconds after which a user logs in again."""

LOGIN_S: Final = 600.0
"""Seconds that a login may take."""

MOST_SESSIONS: Final = 2_000
MOST_LOGINS: Final = 2_000
"""The oldest one gives way, or who only asks would fill the memory."""


@dataclass(frozen=True, slots=True)
class PendingLogin:
    """A login that is under way.

    Attributes:
        state: names it, on the way to the provider and back.
        nonce: the token must have it, so that it was made for this login.
        verifier: the secret of PKCE: who has the code alone gets no token.
        browser: what the browser's cookie must be.
        path: the page that was asked for.
        until: when it ends, by the clock.
    """

    state: str
    nonce: str
    verifier: str
    browser: str
    path: str
    until: float


class Sessions:
    """The sessions and the logins.

    Args:
        clock: seconds that never run backwards.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._logins: OrderedDict[str, PendingLogin] = OrderedDict()
        self._users: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def begin(self, path: str, browser: str = "") -> PendingLogin:
        """Returns a new login.

        Args:
            path: the page that was asked for.
            browser: the browser's cookie of another login that it has begun; empty without one.
        """
        until = self._clock() + LOGIN_S
        begun = PendingLogin(_name(), _name(), _name(), browser or _name(), path, until)
        self._logins[begun.state] = begun
        while len(self._logins) > MOST_LOGINS:
            self._logins.popitem(last=False)
        return begun

    def take(self, state: str, browser: str) -> PendingLogin | None:
        """Ends a login that a browser has begun, and returns it; None where it has not, or too long ago."""
        begun = self._logins.get(state)
        if begun is None or not hmac.compare_digest(begun.browser.encode(), browser.encode()):
            return None
        del self._logins[state]
        return begun if self._clock() < begun.until else None

    def open(self, user: str) -> str:
        """Returns the name of a new session of a user."""
        name = _name()
        self._users[name] = user, self._clock() + SESSION_S
        while len(self._users) > MOST_SESSIONS:
            self._users.popitem(last=False)
        return name

    def user(self, name: str) -> str | None:
        """Returns whose session has a name; None for nobody's."""
        user, until = self._users.get(name, ("", 0.0))
        if self._clock() < until:
            return user
        self._users.pop(name, None)
        return None

    def close(self, name: str) -> None:
        """Ends a session."""
        self._users.pop(name, None)


def _name() -> str:
    return secrets.token_urlsafe(32)
