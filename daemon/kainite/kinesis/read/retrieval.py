"""Chooses how a stream is read: polling, or fan-out over HTTP/2 or HTTP/1.1.

=================  ===========================================  =========================================
``retrievalMode``  HTTP/2 can be spoken                         it cannot
=================  ===========================================  =========================================
``POLLING``        polling                                      polling
``FANOUT``         fan-out over HTTP/2                          fan-out over HTTP/1.1
``DEFAULT``        fan-out over HTTP/2, as in Java              polling
=================  ===========================================  =========================================

As in Java, ``DEFAULT`` is ``POLLING`` where a polling key is set; :mod:`kainite.settings.loading` sees to that.
HTTP/2 needs the extra ``fanout``, an endpoint with TLS, and no proxy on the way there.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final
from urllib.parse import urlsplit

from kainite.settings import Retrieval


class Way(Enum):
    """The ways to read a stream."""

    POLLING = auto()
    HTTP1 = auto()
    HTTP2 = auto()


@dataclass(frozen=True, slots=True)
class ChosenWay:
    """A way, and why it is not HTTP/2; empty where it is, or where polling was asked for."""

    way: Way
    why: str = ""

    @property
    def is_fan_out(self) -> bool:
        return self.way is not Way.POLLING


_OTHERWISE: Final = {Retrieval.FANOUT: Way.HTTP1, Retrieval.DEFAULT: Way.POLLING}


def chosen_way(mode: Retrieval, endpoint: str) -> ChosenWay:
    """Returns how a stream is read.

    Args:
        mode: the settings' mode.
        endpoint: Kinesis's address.
    """
    if mode is Retrieval.POLLING:
        return ChosenWay(Way.POLLING)
    why = _why_no_http2(endpoint)
    return ChosenWay(_OTHERWISE[mode], why) if why else ChosenWay(Way.HTTP2)


def _why_no_http2(endpoint: str) -> str:
    """Returns why HTTP/2 cannot be spoken to an endpoint; empty where it can."""
    if urlsplit(endpoint).scheme != "https":
        return f"{endpoint} has no TLS"
    try:
        import awscrt.http  # noqa: F401
    except ImportError as error:
        return f"the extra fanout is missing ({error}): pip install 'kainite[fanout]'"
    from botocore.utils import get_environ_proxies

    if proxy := get_environ_proxies(endpoint).get("https"):
        return f"the proxy {urlsplit(proxy).hostname} stands before it"
    return ""
