"""How two sides show each other that they know the same key; the key itself never leaves either of them.

::

    accepting side                                   connecting side
    Hello: name, nonce             ───────────────►
                                   ◄───────────────  Hello: name, user, nonce, proof of the connecting side
    Proof of the accepting side    ───────────────►

A proof is an HMAC-SHA256 over both Hellos, under the user's key; it covers the versions, the user and both nonces. So
neither can be replayed, made by the other side, or kept while the versions are changed. The connecting side proves
itself first: who connects and knows no key gets nothing that was made with one. A side that accepts without being the
log's owner cannot prove itself, and is told nothing.

The Hello's message carries all this, so that it works in every version of both protocols.

Crashes and zombies: nothing here is stored. A key ends with what it stands for: the line in the file of users, or the
mount whose HEAD has it (:mod:`kainite.peers.access`). Who proved itself by a token stays until its connection ends; who
proved itself by a line of the file of users, while that line says the same.

========================================  ============================================================================
a peer                                    what happens
========================================  ============================================================================
names no user, or one that is not known   the same as with a wrong proof, in the same time
proves itself with a key of another       refused: the owner has changed since it read HEAD. It reads HEAD again
mount
connects to a port that another process   refuses the peer, which cannot prove itself; appends nothing
has taken
========================================  ============================================================================
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol

from kainite.base.errors import LogProtocolError
from kainite.peers.connection.hello import Hello, encode_hello

OF_CONNECTING: Final = b"kainite 1, the connecting side"
OF_ACCEPTING: Final = b"kainite 1, the accepting side"

NONCE_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class Key:
    """A user's key, and what the user may do."""

    secret: str = field(repr=False)
    rights: frozenset[str]


@dataclass(frozen=True, slots=True)
class Introduction:
    """As whom a process connects.

    Attributes:
        name: the program's name, for logs.
        user: the user's name; empty where it has none.
        secret: the user's key.
    """

    name: str
    user: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Guest:
    """A user that was let in.

    Attributes:
        user: the user's name.
        rights: what it may do (:mod:`kainite.peers.rights`).
        key: the key that it has proved to know.
    """

    user: str
    rights: frozenset[str] = frozenset()
    key: Key | None = field(default=None, repr=False, compare=False)


Keys = Callable[[str], Key | None]
"""Returns the key of the user with a name; None for an unknown one."""


class LetIn(NamedTuple):
    """A peer that is let in, and the proof for it; None for a peer that asks for none."""

    guest: Guest
    proof: bytes | None


class Door(Protocol):
    """Decides who is let in."""

    def judge(self, ours: Hello, theirs: Hello) -> LetIn:
        """Judges the Hello of a peer that has our Hello.

        Raises:
            LogProtocolError: the peer is not let in.
        """

    def has_revoked(self, guest: Guest) -> bool:
        """Returns whether a guest that was let in would not be let in now, or with other rights."""


class Said(NamedTuple):
    """The parts of a Hello's message."""

    name: str
    user: str
    nonce: str
    proof: str


def new_nonce() -> str:
    """Returns a text that was never used before."""
    return secrets.token_hex(NONCE_BYTES)


def named(name: str, nonce: str) -> str:
    """Returns the message in an accepting side's Hello."""
    return f"{name}\0{nonce}"


def said_in(hello: Hello) -> Said:
    """Returns the parts of a peer's message; parts that it lacks are empty."""
    parts = (hello.message or "").split("\0")
    return Said(*(parts + [""] * 4)[:4])


def introducing(introduction: Introduction, nonce: str, ours: Hello, theirs: Hello) -> tuple[Hello, bytes]:
    """Returns the connecting side's Hello, and the proof that the accepting side must give.

    Args:
        introduction: as whom this side connects.
        nonce: a new nonce of this side.
        ours: this side's Hello, without a message.
        theirs: the accepting side's Hello.
    """
    parts = introduction.name, introduction.user, nonce
    told = Hello(ours.versions, "\0".join(parts))
    proof = proof_of(introduction.secret, OF_CONNECTING, (theirs, told)).hex()
    expected = proof_of(introduction.secret, OF_ACCEPTING, (theirs, told))
    return Hello(ours.versions, "\0".join((*parts, proof))), expected


def proof_of(secret: str, side: bytes, hellos: Iterable[Hello]) -> bytes:
    """Returns a side's proof that it knows a key, bound to the Hellos of one connection."""
    told = b"".join(encode_hello(0, hello) for hello in hellos)  # each has its length in it
    return hmac.digest(secret.encode("utf-8", "replace"), side + told, hashlib.sha256)


class Doorkeeper:
    """Lets in who knows the key of a user; implements :class:`Door`.

    Args:
        keys: returns the users' keys, at the time of each connection.
        revokes: whether a guest whose key has changed has to go.
    """

    def __init__(self, keys: Keys, *, revokes: bool = False) -> None:
        self._keys = keys
        self._revokes = revokes
        self._nobody = Key(os.urandom(NONCE_BYTES).hex(), frozenset())

    def judge(self, ours: Hello, theirs: Hello) -> LetIn:
        said = said_in(theirs)
        key = (self._keys(said.user) if said.user else None) or self._nobody
        hellos = ours, Hello(theirs.versions, "\0".join((said.name, said.user, said.nonce)))
        proof = proof_of(key.secret, OF_CONNECTING, hellos).hex()
        known = hmac.compare_digest(proof.encode(), said.proof.encode("utf-8", "replace"))
        if key is self._nobody or not known:
            raise LogProtocolError("the peer's user is not known, or its proof is wrong")
        return LetIn(Guest(said.user, key.rights, key), proof_of(key.secret, OF_ACCEPTING, hellos))

    def has_revoked(self, guest: Guest) -> bool:
        return self._revokes and self._keys(guest.user) != guest.key
