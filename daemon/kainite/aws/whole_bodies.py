"""Makes a client read the body of a reply in one piece.

botocore reads a body in pieces of 64 KiB and joins them. For a GetRecords reply of megabytes that takes half as much
processor time again as one read of the whole length. Everything else stays botocore's: connections, proxies,
certificates, time limits, and which failure is tried again. Its errors are raised here as its session raises them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ConnectionClosedError, HTTPClientError, ReadTimeoutError
from urllib3.exceptions import ProtocolError
from urllib3.exceptions import ReadTimeoutError as Urllib3ReadTimeoutError

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.client import BaseClient


@dataclass(frozen=True, slots=True)
class ReadBody:
    """A body that was read, in the place of urllib3's response."""

    whole: bytes

    def stream(self) -> tuple[bytes]:
        """Returns the pieces of the body."""
        return (self.whole,)


@dataclass(slots=True)
class CallUnderWay:
    """A call that :mod:`kainite.aws.repeated_calls` has botocore make.

    Attributes:
        answer: the answer to the call's first request, or the error in place of one; None where it is to be sent.
        sent: the request that botocore sent last; None where it sent none.
    """

    answer: AWSResponse | Exception | None = None
    sent: AWSPreparedRequest | None = None


CALL: Final[ContextVar[CallUnderWay | None]] = ContextVar("call", default=None)
"""The call that is under way."""


def read_whole_bodies(client: BaseClient, operation: str) -> None:
    """Makes the replies of one operation of a client be read in one piece, where botocore is as it is known.

    Args:
        client: the client.
        operation: the operation's name, such as ``GetRecords``.
    """
    endpoint = getattr(client, "_endpoint", None)  # there is no public name, and another release may have none at all
    session = getattr(endpoint, "http_session", None)
    if session is None:
        return
    send: Callable[..., Any] = partial(_send, session_send=session.send)
    name = f"before-send.{client.meta.service_model.service_id.hyphenize()}.{operation}"
    client.meta.events.register_last(name, send, unique_id="kainite-whole-bodies")


def _send(
    request: AWSPreparedRequest, session_send: Callable[[AWSPreparedRequest], AWSResponse], **_: object
) -> AWSResponse:
    """Sends a request in botocore's place; errors and reply as of :func:`sent_whole`."""
    under_way = CALL.get() or CallUnderWay()
    answer, under_way.answer = under_way.answer, None
    if isinstance(answer, Exception):
        raise answer
    if answer is not None:
        return answer
    under_way.sent = request
    return sent_whole(request, session_send)


def sent_whole(request: AWSPreparedRequest, session_send: Callable[[AWSPreparedRequest], AWSResponse]) -> AWSResponse:
    """Sends a request, and returns the reply with its body read.

    Raises:
        HTTPClientError: as botocore's session raises it; botocore decides whether the request is sent again.
    """
    request.stream_output = True  # the session leaves the body unread
    response = session_send(request)
    try:
        response.raw = ReadBody(response.raw.read())
    except Urllib3ReadTimeoutError as error:
        raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
    except ProtocolError as error:
        raise ConnectionClosedError(error=error, request=request, endpoint_url=request.url) from error
    except Exception as error:
        raise HTTPClientError(error=error) from error
    return response
