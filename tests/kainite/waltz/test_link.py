"""A program's connection: what it says of an owner that is not reached, and what it never sends."""

from __future__ import annotations

import pytest

from kainite.base.address import Address
from kainite.base.errors import LogRequestError, LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.waltz.link import program_link
from support.doors import ANN
from support.ports import free_port


async def test_an_owner_that_is_not_reached_is_unavailable() -> None:
    with pytest.raises(LogUnavailableError, match="is not reached at 127"):
        async with program_link(Address("127.0.0.1", free_port()), None, ANN, ReqId()):
            pass


async def test_no_proof_of_a_secret_leaves_the_host_without_tls() -> None:
    with pytest.raises(LogRequestError, match="set logTrustFile"):
        async with program_link(Address("10.0.0.7", 1), None, ANN, ReqId()):
            pass


async def test_an_error_of_the_program_itself_stays_what_it_is() -> None:
    from support.application_world import world

    async with world() as found:
        with pytest.raises(FileNotFoundError):
            async with program_link(found.server.address, None, ANN, ReqId()):
                raise FileNotFoundError("the program's own")
