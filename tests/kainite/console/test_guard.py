"""The guard: who has logged in is remembered, and who guesses waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kainite.console import guard
from kainite.console.access import Access, Login
from kainite.console.guard import MOST_WAITING, Guard, Logins
from kainite.console.secrets import HashedSecret
from kainite.settings import ConsoleSettings


class CountedSecret(HashedSecret):
    """A secret that counts how often it is compared."""

    __slots__ = ()
    compared = 0

    def matches(self, secret: str) -> bool:
        CountedSecret.compared += 1
        return secret == "right"


async def test_a_right_secret_is_compared_once_and_a_wrong_one_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    CountedSecret.compared = 0
    logins = Logins({"ada": CountedSecret(b"", b"")})
    for _ in range(3):
        assert await logins.refusal(Login("ada", "right")) is None
        refusal = await logins.refusal(Login("ada", "wrong"))
        assert refusal is not None
        assert refusal.status == 401
    assert CountedSecret.compared == 4
    monkeypatch.setattr(guard, "REMEMBERED_S", -1.0)
    logins = Logins({"ada": CountedSecret(b"", b"")})
    await logins.refusal(Login("ada", "right"))
    await logins.refusal(Login("ada", "right"))
    assert CountedSecret.compared == 6


async def test_so_many_guesses_wait_and_no_more() -> None:
    logins = Logins({"ada": CountedSecret(b"", b"")})
    refusals = await asyncio.gather(*(logins.refusal(Login("ada", f"wrong {at}")) for at in range(MOST_WAITING + 15)))
    assert [refusal.status for refusal in refusals if refusal is not None].count(429) == 15


async def test_a_websocket_is_not_accepted_and_a_prefix_is_cut_off_once() -> None:
    seen: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope["path"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> Any:
        return {"type": "http.request", "body": b""}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    guarded = Guard(app, Access(ConsoleSettings()), {}, "/k", secure=True)
    await guarded({"type": "websocket"}, receive, send)
    assert sent == []
    for path in ("/k", "/k/", "/k/k/x", "/kx", "/x"):
        scope = {"type": "http", "method": "GET", "path": path, "headers": [(b"host", b"localhost")], "client": None}
        await guarded(scope, receive, send)
    assert seen == ["/", "/", "/k/x", "/kx", "/x"]
    assert (b"strict-transport-security", b"max-age=31536000") in sent[0]["headers"]
