"""A program's connection to the log's owner: connects, and raises the errors that programs know.

A silent owner is asked for its mark each PING_S seconds. An owner that does not answer this question either counts as
gone: its host may have crashed. While the program takes no messages, the owner is not asked.
"""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator
from typing import Final, TypeAlias

from kainite.base.address import Address
from kainite.base.errors import LogRequestError, LogUnavailableError
from kainite.log.format.entry import ReqId
from kainite.peers.client import ClientLink, Silence, linked
from kainite.peers.connection.core import Limits
from kainite.peers.connection.introduction import Introduction
from kainite.peers.users import TOKEN
from kainite.waltz.wire.layouts import WaltzMessage
from kainite.waltz.wire.messages import HighWaterMarkRequest
from kainite.waltz.wire.versions import WALTZ

PING_S: Final = 5.0
"""Seconds of silence after which an owner is asked for its mark, and asked again."""

SILENT_PINGS: Final = 3
"""Questions that an owner may leave unanswered."""

Link: TypeAlias = ClientLink[WaltzMessage]


@contextlib.asynccontextmanager
async def program_link(
    address: Address, tls: ssl.SSLContext | None, introduction: Introduction, ping: ReqId
) -> AsyncIterator[Link]:
    """Connects and greets; closes the connection in the end.

    Args:
        address: where the owner listens.
        tls: this side's TLS context; None means that nothing is encrypted.
        introduction: as whom this program connects.
        ping: the request id of the questions to a silent owner.

    Raises:
        LogUnavailableError: the owner is not reached, or the connection broke.
        LogProtocolError: the owner speaks another protocol.
        LogRequestError: the proof of a secret would leave the host without TLS.
    """
    is_chosen = introduction.secret and not introduction.user.startswith(TOKEN)
    if is_chosen and tls is None and not address.is_loopback:  # who listens on the way could try secrets on the proof
        raise LogRequestError(f"no secret is used at {address} without TLS: set logTrustFile")
    limits = Limits(silent=PING_S * (SILENT_PINGS + 1))
    asking: Silence[WaltzMessage] = Silence(HighWaterMarkRequest(ping), PING_S)
    connecting = linked(WALTZ, address, introduction, tls=tls, limits=limits, silence=asking)
    async with contextlib.AsyncExitStack() as stack:
        try:
            link = await stack.enter_async_context(connecting)
        except OSError as error:
            raise LogUnavailableError(f"the log's owner is not reached at {address}: {error or 'timed out'}") from error
        yield link
