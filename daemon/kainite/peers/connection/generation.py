"""The generation of the log's owner at the other end, as its messages tell it; no I/O, no clock.

=========  ================================================  =======================================================
state      a message's generation                            then
=========  ================================================  =======================================================
named      that of HEAD, or a higher one: the owner is the   settled on it
           one that HEAD named, or has mounted since then
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
        """The generation as far as it is known; what this side's own messages carry."""
        self._settled = False

    def check(self, generation: int) -> None:
        """Takes the generation of a message.

        Raises:
            LogUnavailableError: the peer was the log's owner once.
            LogProtocolError: the peer is another owner than it was before.
        """
        if generation < self.value:
            raise LogUnavailableError(f"the peer owned the log as generation {generation}; it was replaced")
        if self._settled and generation > self.value:
            raise LogProtocolError(f"a message of generation {generation} came from an owner of {self.value}")
        self.value, self._settled = generation, True
