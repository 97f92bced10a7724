"""Proofs: who knows the key of a user is let in, and nobody else, whatever was heard on other connections."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kainite.base.errors import LogProtocolError
from kainite.peers.connection.hello import Hello
from kainite.peers.connection.introduction import (
    Doorkeeper,
    Guest,
    Introduction,
    Key,
    introducing,
    named,
    new_nonce,
    proof_of,
    said_in,
)

RIGHTS = frozenset({"daemon"})
KEYS = {"ann": Key("one", RIGHTS), "bob": Key("two", frozenset({"follow"}))}
ANN = Introduction("w1", "ann", "one")
OURS = Hello((4,), None)
DOOR = Doorkeeper(KEYS.get)


def owners() -> Hello:
    return Hello((4,), named("owner", new_nonce()))


def test_who_knows_the_key_is_let_in_with_the_users_rights_and_is_answered_with_a_proof() -> None:
    theirs = owners()
    hello, expected = introducing(ANN, new_nonce(), OURS, theirs)
    assert DOOR.judge(theirs, hello) == (Guest("ann", RIGHTS), expected)
    assert "one" not in (hello.message or "")
    assert "one" not in repr((ANN, KEYS))


@pytest.mark.parametrize(
    "introduction",
    [
        replace(ANN, secret="two"),
        replace(ANN, user="bob"),
        replace(ANN, user="eve"),
        replace(ANN, user=""),
        Introduction("w1"),
    ],
)
def test_nobody_else_is_let_in(introduction: Introduction) -> None:
    theirs = owners()
    hello, _ = introducing(introduction, new_nonce(), OURS, theirs)
    with pytest.raises(LogProtocolError, match="user is not known, or its proof is wrong"):
        DOOR.judge(theirs, hello)


def test_what_was_heard_on_one_connection_is_worth_nothing_on_another() -> None:
    theirs = owners()
    hello, expected = introducing(ANN, new_nonce(), OURS, theirs)
    with pytest.raises(LogProtocolError):
        DOOR.judge(owners(), hello)  # said again
    said = said_in(hello)
    for message in (
        "\0".join((said.name, said.user, said.nonce, expected.hex())),  # the owner's proof in place of the client's
        "\0".join((said.name, "bob", said.nonce, said.proof)),
        "\0".join((said.name, said.user, new_nonce(), said.proof)),
        "\0".join((said.name, said.user, said.nonce)),
        "one",
        None,
    ):
        with pytest.raises(LogProtocolError):
            DOOR.judge(theirs, Hello((4,), message))
    with pytest.raises(LogProtocolError):
        DOOR.judge(theirs, Hello((1, 4), hello.message))  # other versions


def test_a_proof_is_of_one_side_alone() -> None:
    hellos = owners(), owners()
    assert proof_of("one", b"a", hellos) != proof_of("one", b"b", hellos)
    assert proof_of("one", b"a", hellos) != proof_of("two", b"a", hellos)


def test_a_key_that_has_gone_lets_nobody_in() -> None:
    keys = dict(KEYS)
    theirs = owners()
    hello, _ = introducing(ANN, new_nonce(), OURS, theirs)
    door = Doorkeeper(keys.get)
    assert door.judge(theirs, hello).guest.user == "ann"
    del keys["ann"]
    with pytest.raises(LogProtocolError):
        door.judge(theirs, hello)
