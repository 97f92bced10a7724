"""The generation of the log's owner at the other end, which each of its messages names; no I/O, no clock.

=========  ================================================  =======================================================
state      a message's generation                            then
=========  ================================================  =======================================================
named      HEAD's generation, or a higher one: the owner is  settled on this generation
           the one that HEAD named, or has mounted since
named      a lower one                                       LogUnavailableError: the owner was replaced
settled    the same                                          settled
settled    a lower one                                       LogUnavailableError: the owner was replaced
settled    a higher one                                      LogProtocolError: an owner keeps its generation
=========  ================================================  =======================================================
"""

from __future__ import annotations

from kainite.base.errors import LogProtocolError, LogUnavailableError


class OwnerGeneration:
    """The generation of one connection's owner.

    Args:
        named: the generation that HEAD named.
    """

    def __init__(self, named: int) -> None:
        self.value = named
        """The generation that this side's own messages name: HEAD's at first, then the owner's."""
        self._settled = False

    def check(self, generation: int) -> None:
        """Checks the generation in one of the owner's messages.

        Raises:
            LogUnavailableError: the peer is a former owner of the log.
            LogProtocolError: the generation has changed since the connection's first message.
        """
        if generation < self.value:
            raise LogUnavailableError(f"the peer owned the log as generation {generation}; it was replaced")
        if self._settled and generation > self.value:
            raise LogProtocolError(f"a message of generation {generation} came from an owner of {self.value}")
        self.value, self._settled = generation, True
