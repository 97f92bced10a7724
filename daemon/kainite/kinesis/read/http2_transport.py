"""Sends SubscribeToShard over HTTP/2, as AWS documents it; boto3 speaks HTTP/1.1 alone.

boto3 goes on doing everything else: it finds the endpoint, writes the request, signs it with credentials that it
renews, tries again, and reads refusals. Its event ``before-send`` hands over the signed request, and takes the reply.

Each subscription has a connection of its own. So a lost connection, a GOAWAY or a reader that takes nothing concerns
one shard, as over HTTP/1.1; a new connection in five minutes costs nothing that counts.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

from awscrt import exceptions, http
from awscrt import io as crt
from botocore.awsrequest import AWSResponse
from botocore.exceptions import ConnectTimeoutError, EndpointConnectionError, HTTPClientError, ReadTimeoutError
from botocore.httpsession import get_cert_path
from botocore.session import Session

from kainite.kinesis.read.http2_body import WINDOW, Http2Body

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest
    from types_boto3_kinesis import KinesisClient

_TLS_S: Final = 31.0
"""Seconds for the TLS handshake: the library tells of a failed one, such as an untrusted certificate, within 30 s."""

_NOT_SENT: Final = frozenset({"host", "connection", "transfer-encoding"})
"""Headers that HTTP/2 has no place for, in lower case; the host becomes ``:authority``."""


def use_http2(kinesis: KinesisClient) -> None:
    """Makes a client send SubscribeToShard over HTTP/2."""
    config: Any = kinesis.meta.config  # its type stub lacks the options
    transport: Any = _Http2Transport(config.connect_timeout, config.read_timeout)
    kinesis.meta.events.register("before-send.kinesis.SubscribeToShard", transport.send, unique_id="kainite-http2")


@dataclass(frozen=True, slots=True)
class _Content:
    """The body of a refusal, as botocore reads it."""

    content: bytes

    def stream(self) -> Iterator[bytes]:
        yield self.content


class _Http2Transport:
    """Opens connections, and makes requests on them; threads may share it.

    Args:
        connect_timeout: seconds to connect.
        read_timeout: seconds for the head of a reply, and for each part of its body.
    """

    def __init__(self, connect_timeout: float, read_timeout: float) -> None:
        self._connect_timeout = connect_timeout
        self._read_timeout = read_timeout
        threads = crt.EventLoopGroup(1)
        self._bootstrap = crt.ClientBootstrap(threads, crt.DefaultHostResolver(threads))
        self._socket = crt.SocketOptions()
        self._socket.connect_timeout_ms = max(1, round(connect_timeout * 1000))

    def send(self, request: AWSPreparedRequest, **_: object) -> AWSResponse:
        """Sends a signed request; returns its reply, the body of which is unread where the status is 200.

        Raises:
            HTTPClientError, EndpointConnectionError: there is no connection, or no reply.
        """
        url = urlsplit(request.url)
        connection = self._connect(url)
        body = Http2Body(connection, self._read_timeout)
        try:
            status, headers = self._asked(connection, body, request, url)
            if status == 200:
                return AWSResponse(request.url, status, headers, body)
            content = b"".join(body.stream())
        except TimeoutError as error:
            body.close()
            raise ReadTimeoutError(endpoint_url=request.url, error=error) from error
        except Exception as error:
            body.close()
            raise HTTPClientError(error=error) from error
        body.close()
        return AWSResponse(request.url, status, headers, _Content(content))

    def _asked(
        self, connection: Any, body: Http2Body, request: AWSPreparedRequest, url: SplitResult
    ) -> tuple[int, Any]:
        """Makes the request; returns status and headers of the reply."""
        headers, content = http.HttpHeaders([("Host", _authority(url))]), request.body
        for name, value in request.headers.items():
            if name.lower() not in _NOT_SENT:
                headers.add(name, value.decode() if isinstance(value, bytes) else str(value))
        assert isinstance(content, bytes)  # the JSON of a request is never a stream
        asked = http.HttpRequest(request.method, url.path or "/", headers, io.BytesIO(content))
        stream = connection.request(asked, on_response=body.on_response, on_body=body.on_body)
        stream.completion_future.add_done_callback(body.on_end)
        stream.activate()
        return body.head()

    def _connect(self, url: SplitResult) -> Any:
        options = self._trust.new_connection_options()
        options.set_alpn_list(["h2"])
        options.set_server_name(url.hostname)
        connecting: Future[Any] = http.Http2ClientConnection.new(
            url.hostname or "", url.port or 443, self._bootstrap, self._socket, options,
            manual_window_management=True, initial_window_size=WINDOW,
        )  # fmt: skip
        try:
            return connecting.result(self._connect_timeout + _TLS_S)
        except TimeoutError as error:
            connecting.add_done_callback(_close_late)
            raise ConnectTimeoutError(endpoint_url=url.geturl(), error=error) from error
        except exceptions.AwsCrtError as error:
            raise EndpointConnectionError(endpoint_url=url.geturl(), error=error) from error

    @cached_property
    def _trust(self) -> crt.ClientTlsContext:
        """Returns what servers' certificates are checked by: the authorities that botocore trusts, too."""
        options = crt.TlsContextOptions()
        options.override_default_trust_store_from_path(
            None, Session().get_config_variable("ca_bundle") or get_cert_path(True)
        )
        return crt.ClientTlsContext(options)


def _authority(url: SplitResult) -> str:
    """Returns the host as it was signed: with the port unless that is the scheme's own."""
    host = url.netloc.rpartition("@")[2]
    return host.removesuffix(":443")


def _close_late(connecting: Future[Any]) -> None:
    """Closes a connection that came when nobody waited for it any more."""
    if connecting.exception() is None:
        connecting.result().close()
