"""Appends through the log's owner in another process, over one connection, until the connection ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from kainite.base.errors import LogProtocolError, LogUnavailableError
from kainite.base.logs import event
from kainite.base.waiting import side_by_side
from kainite.peers.access import LOG_USER, Access
from kainite.peers.address import OwnerAddress
from kainite.peers.sharing.connection import OwnerConnection, connected
from kainite.peers.sharing.conversation import MemberName
from kainite.peers.sharing.head_look import ToldOnce
from kainite.peers.sharing.latest_reading import LatestReading
from kainite.peers.sharing.membership import Cut, Refused
from kainite.peers.sharing.present_log import PresentLog

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Appending:
    """The parts that this process needs to append through an owner elsewhere.

    Attributes:
        name: this process's identity, and the log that it means.
        access: this process's TLS context, and as whom it connects.
        present_log: gets the connection as the present log.
        reading: reports how far this process's shards are read.
        told: logs warnings.
    """

    name: MemberName
    access: Access
    present_log: PresentLog
    reading: LatestReading
    told: ToldOnce

    async def append_at(self, to: OwnerAddress, generation: int, welcomed: Callable[[], None]) -> Refused | Cut:
        """Connects to an owner, and appends through it until the connection ends.

        Args:
            to, generation: the owner's address and generation, as HEAD names them.
            welcomed: called when the owner takes requests.
        """
        access = self.access
        connecting = connected(
            to, self.name, generation, self.reading.now,
            introduction=access.introduce(self.name.worker, LOG_USER, to.token), tls=access.client_tls(),
        )  # fmt: skip
        try:
            async with connecting as connection:
                await self._append_through(connection, to, generation, welcomed)
        except ConnectionRefusedError:
            return Refused()
        except LogProtocolError as error:
            self.told.say("log's owner not understood", address=to, error=error)
        except (OSError, LogUnavailableError) as error:
            event(_logger, logging.INFO, "log's owner left", address=to, error=error)
        return Cut()

    async def _append_through(
        self, connection: OwnerConnection, to: OwnerAddress, generation: int, welcomed: Callable[[], None]
    ) -> None:
        async with side_by_side(connection.converse(), connection.opened()) as (conversing, opening):
            try:
                await asyncio.wait({conversing, opening}, return_when=asyncio.FIRST_COMPLETED)
                if opening.done():
                    self.told.is_over()
                    event(_logger, logging.INFO, "log reached", address=to, generation=generation)
                    self.present_log.put(connection)
                    welcomed()
                await conversing
            finally:
                self.present_log.drop(connection)
