"""Tells replies that are not of AWS from those that are: a captive portal's page, a proxy's refusal, another server.

botocore reads such a reply as one without any field. So a call ended in ``KeyError``, or, worse, a write that nobody
took counted as written. Each reply of DynamoDB and of Kinesis has a content type of AWS's own or the id of its request;
the doubles (LocalStack, moto, DynamoDB Local, kinesalite) send these too, but for LocalStack's stream of events.
Replies with a status of 500 or more are left to botocore, which sends the request again: a load balancer answers for
the service then.

A foreign reply says nothing about the request, which may have been carried out: it counts as no answer
(:data:`~kainite.aws.failures.WITHOUT_ANSWER`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import HTTPClientError

if TYPE_CHECKING:
    from botocore.client import BaseClient

SHOWN: Final = 80
"""So many bytes of a foreign reply are shown."""

_TYPES: Final = ("application/x-amz-", "application/cbor", "application/vnd.amazon.eventstream")
_ID: Final = "x-amzn-requestid"


class ForeignReplyError(HTTPClientError):
    """A reply came, and it is none of the service."""

    fmt = (
        "{endpoint} answered HTTP {status} and is not {service}: {begin}; look at {key}, at HTTPS_PROXY and NO_PROXY, "
        "and whether a proxy or a log-in page stands in between"
    )


def refuse_foreign_replies(client: BaseClient, service: str, key: str) -> None:
    """Makes a client's calls raise :class:`ForeignReplyError` where the reply is not the service's.

    Args:
        client: the client.
        service: the service's name, for the error.
        key: the settings' key of its endpoint, for the error.
    """
    check = partial(_check, endpoint=client.meta.endpoint_url, service=service, key=key)
    name = f"before-parse.{client.meta.service_model.service_id.hyphenize()}"
    client.meta.events.register_first(name, check, unique_id="kainite-foreign-reply")
    # Before the body of GetRecords is set aside (kainite.kinesis.client): the error shows how it begins.
    client.meta.events.register_first(f"{name}.GetRecords", check, unique_id="kainite-foreign-reply-records")


def is_of_aws(headers: Mapping[str, str]) -> bool:
    """Tells by a reply's headers, whose names have any case, whether AWS has sent it."""
    return _ID in headers or headers.get("content-type", "").lower().startswith(_TYPES)


def _check(response_dict: Mapping[str, Any], endpoint: str, service: str, key: str, **_: object) -> None:
    headers, status = response_dict["headers"], response_dict["status_code"]
    body = response_dict["body"]
    # LocalStack's stream of events has no mark, and says that it is text; whoever reads it checks each event's frame.
    is_stream = status < 300 and not isinstance(body, bytes)
    if status >= 500 or is_stream or is_of_aws(headers):
        return
    begin = repr(bytes(body[:SHOWN])) if isinstance(body, bytes) else "a stream"
    raise ForeignReplyError(endpoint=endpoint, status=status, service=service, begin=begin, key=key)
