"""Makes the calls of one operation that is called again and again, without what botocore does around each.

A reader calls GetRecords up to five times a second for each shard, mostly for nothing. Of the processor time of such a
call, botocore takes half for what comes out the same each time: it validates the parameters, resolves the
endpoint, and hands events to dozens of handlers. Here only the first call is botocore's. The request that botocore
sends is kept as a pattern; later calls are sent to its address, with its headers and a body of their own.

Everything that must agree stays botocore's: the client's credentials, renewed as botocore renews them; its signature;
its HTTP session, with connections, proxies, certificates and time limits; and all that follows a failure.

=========  ====================================================================  ==================================
state      a call                                                                becomes
=========  ====================================================================  ==================================
learning   is botocore's; the request it sends becomes the pattern                repeating, where it is as known
repeating  is sent by the pattern; a plain answer (200, of AWS) is returned       stays
repeating  any other answer or error: botocore makes the call from the start,     resting
           and gets that answer or error for its first request
resting    is botocore's                                                          learning, after :data:`REST_S`
=========  ====================================================================  ==================================

Invariants: no request is sent that botocore would not have sent; which failure is tried again, when, how often, and
with which error it ends is decided by botocore alone. botocore also counts how its calls end, and tries no failure
again where too many calls fail (its retry quota), which calls made here would not refill: hence the rest.

Nothing is stored: a crash leaves nothing behind.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from kainite.aws.foreign_replies import is_of_aws
from kainite.aws.whole_bodies import CALL, CallUnderWay, read_whole_bodies, sent_whole

if TYPE_CHECKING:
    from botocore.awsrequest import AWSPreparedRequest, AWSResponse
    from botocore.client import BaseClient
    from botocore.credentials import ReadOnlyCredentials

REST_S: Final = 60.0
"""Seconds for which botocore makes all calls after one that got no plain answer."""

_KEPT: Final = ("Content-Type", "User-Agent", "X-Amz-Target")
_JSON: Final = "application/x-amz-json-1.1"
_ALGORITHM: Final = "AWS4-HMAC-SHA256 Credential="


@dataclass(frozen=True, slots=True)
class Pattern:
    """A request of botocore's, without what differs from call to call.

    Attributes:
        url, headers: the address, and the headers that say what is called.
        region, service: what the signature is made for.
    """

    url: str
    headers: Mapping[str, str]
    region: str
    service: str

    @classmethod
    def of(cls, request: AWSPreparedRequest, parameters: Mapping[str, object]) -> Pattern | None:
        """Returns the pattern of a request with these parameters; None where it is not made as is known here."""
        headers = {name: _text(value) for name, value in request.headers.items()}
        kept: dict[str, str] = {name: headers[name] for name in _KEPT if name in headers}
        algorithm, _, scope = headers.get("Authorization", "").partition("=")
        parts = scope.partition(",")[0].split("/")
        is_known = (
            f"{algorithm}=" == _ALGORITHM
            and len(parts) == 5
            and len(kept) == len(_KEPT)
            and kept["Content-Type"] == _JSON
            and isinstance(request.body, str | bytes)
            and json.loads(request.body) == parameters
        )
        return cls(request.url, kept, parts[2], parts[3]) if is_known else None

    def request(self, parameters: Mapping[str, object], credentials: ReadOnlyCredentials) -> AWSPreparedRequest:
        """Returns a request, signed."""
        from botocore.auth import SigV4Auth
        from botocore.awsrequest import AWSRequest

        made = AWSRequest("POST", self.url, self.headers, json.dumps(parameters).encode())
        SigV4Auth(credentials, self.service, self.region).add_auth(made)
        return made.prepare()


class RepeatedCalls:
    """The calls of one operation of a client, all to the same address. Threads may share it.

    The client's replies to this operation are read in one piece (:mod:`kainite.aws.whole_bodies`).

    Args:
        client: the client. Where it is not made as is known here, all calls are botocore's.
        operation: the operation's name, such as ``GetRecords``.
        call: makes the call by botocore, given the parameters; returns the body of the reply.
        rest: as :data:`REST_S`.
    """

    def __init__(
        self, client: BaseClient, operation: str, call: Callable[[Mapping[str, Any]], bytes], rest: float = REST_S
    ) -> None:
        read_whole_bodies(client, operation)
        # There are no public names, and another release may have none at all.
        self._session: Any = getattr(getattr(client, "_endpoint", None), "http_session", None)
        self._credentials: Any = getattr(getattr(client, "_request_signer", None), "_credentials", None)
        self._call = call
        self._rest = rest
        self._pattern: Pattern | None = None
        self._rests_until = 0.0

    def body(self, parameters: Mapping[str, Any]) -> bytes:
        """Makes a call; returns the body of the reply.

        Raises:
            botocore's errors.
        """
        answer = self._repeated(parameters)
        if answer is not None:
            if not isinstance(answer, Exception) and answer.status_code == HTTPStatus.OK and is_of_aws(answer.headers):
                return answer.content
            self._pattern, self._rests_until = None, time.monotonic() + self._rest
        return self._by_botocore(parameters, CallUnderWay(answer))

    def _repeated(self, parameters: Mapping[str, Any]) -> AWSResponse | Exception | None:
        """Makes a call by the pattern; returns the reply, or the error in place of one; None where none was sent."""
        pattern = self._pattern
        if pattern is None:
            return None
        try:
            request = pattern.request(parameters, self._credentials.get_frozen_credentials())
        except Exception:  # botocore fails to sign its own request too, and knows what follows
            return None
        try:
            return sent_whole(request, self._session.send)
        except Exception as error:
            return error

    def _by_botocore(self, parameters: Mapping[str, Any], under_way: CallUnderWay) -> bytes:
        token = CALL.set(under_way)
        try:
            body = self._call(parameters)
        finally:
            CALL.reset(token)
        if under_way.sent is not None and self._credentials is not None and time.monotonic() >= self._rests_until:
            self._pattern = Pattern.of(under_way.sent, parameters)
        return body


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
