"""Another user of the host who speaks the log's own protocol: a process that becomes ``nobody`` and tries to get in."""

from __future__ import annotations

import asyncio
import contextlib
import encodings.idna  # noqa: F401 - a connection needs it, and nobody may not get to where Python stands
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from kainite.base.position import Position
from kainite.peers.address import OwnerAddress, of_listener
from kainite.peers.connection.hello import Hello
from kainite.peers.connection.introduction import Introduction, introducing, new_nonce
from kainite.peers.messages import Follow, Join, Message, SentPosition, ShardAppend
from support.another_user import NOBODY
from support.attackers import attacker

LIMIT = 60.0
_FAR = SentPosition.of(Position(10**50))
_NOTHING = memoryview(b"\x93\x90\x90\x80")


@dataclass(frozen=True, slots=True)
class Stranger:
    """What a process of another user tries, as JSON can carry it.

    Attributes:
        port: the log's port.
        log: the log's name.
        shard: the shard for which it appends at a far position.
        keys: the users as whom it introduces itself, each with a secret.
    """

    port: int
    log: str
    shard: str
    keys: list[list[str]]


@dataclass(frozen=True, slots=True)
class Reached:
    """What the process reached.

    Attributes:
        user: the user id as which it tried.
        let_in: for each key, whether the owner let it in.
        heard: for each key, the kinds of the messages that it got when it joined, appended and followed.
    """

    user: int
    let_in: list[bool]
    heard: list[list[str]]


def tried_by_nobody(stranger: Stranger) -> Reached:
    """Returns what the user ``nobody`` reaches."""
    told = json.dumps([stranger.port, stranger.log, stranger.shard, stranger.keys])
    command = [sys.executable, "-c", f"from {__name__} import main; main()", told]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, timeout=LIMIT, check=False, env=environment)
    assert done.returncode == 0, done.stderr.decode()
    return Reached(*json.loads(done.stdout))


def main() -> None:
    """Becomes ``nobody``, tries what the argument says, and prints what it reached."""
    stranger = Stranger(*json.loads(sys.argv[1]))
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    print(json.dumps([os.getuid(), *asyncio.run(_tried(stranger))]))


async def _tried(stranger: Stranger) -> tuple[list[bool], list[list[str]]]:
    address = of_listener("127.0.0.1", stranger.port)
    join = Join(1, 0, stranger.log, "s", "evil", "evil")
    append = ShardAppend(1, 1, stranger.shard, None, _FAR, _FAR, _NOTHING, memoryview(b""))
    follow = Follow(1, 0, stranger.log, "evil", 0, 1 << 20, 1 << 20, False)
    keys = [Introduction("evil", user, secret) for user, secret in stranger.keys]
    let_in = [await _let_in(address, who) for who in keys]
    heard = [await _heard(address, who, *pushed) for who in keys for pushed in ((join, append), (follow,))]
    return let_in, heard


async def _let_in(address: OwnerAddress, who: Introduction) -> bool:
    async with attacker(address) as evil:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            return await evil.prove(who)
    return False


async def _heard(address: OwnerAddress, who: Introduction, *pushed: Message) -> list[str]:
    """Says everything at once, without waiting for the owner's proof; returns the kinds of the messages heard."""
    async with attacker(address) as evil:
        theirs = await evil.owners_hello()
        hello, _ = introducing(who, new_nonce(), Hello((1,), None), theirs)
        evil.say(hello, *pushed)
        return [type(message).__name__ for message in await evil.heard()]
