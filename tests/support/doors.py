"""Who is let in by the servers of tests."""

from __future__ import annotations

from collections.abc import Mapping

from kainite.peers.access_files import AccessFiles
from kainite.peers.connection.hello import Hello
from kainite.peers.connection.introduction import Door, Doorkeeper, Guest, Introduction, Key, LetIn, said_in
from kainite.peers.held_files import HeldFiles
from kainite.peers.rights import APPLICATION, OF_THE_LOG

SECRET = "one"
ALL_RIGHTS = OF_THE_LOG | {APPLICATION}
ANN = Introduction("test", "ann", SECRET)
USERS = {"ann": Key(SECRET, ALL_RIGHTS)}

ANNS: Door = Doorkeeper(USERS.get)
"""Lets in :data:`ANN` alone."""


class Everybody:
    """Lets in who says nothing about itself, with all rights, and every user with SECRET."""

    def judge(self, ours: Hello, theirs: Hello) -> LetIn:
        if said_in(theirs).user:
            return Doorkeeper(lambda _: USERS["ann"]).judge(ours, theirs)
        return LetIn(Guest("everybody", ALL_RIGHTS), None)

    def has_revoked(self, guest: Guest) -> bool:
        return False


EVERYBODY = Everybody()


def holding(users: Mapping[str, Key]) -> HeldFiles:
    """Returns what a file of these users holds."""
    return HeldFiles(AccessFiles(users=users))
