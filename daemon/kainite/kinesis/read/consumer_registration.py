"""Registers the consumer under which all workers of an application subscribe (KCL's ``FanOutConsumerRegistration``).

::

    not there --RegisterStreamConsumer--> CREATING --> ACTIVE
        ^------------------------- DELETING <-- (a user deregistered the consumer)

Several workers may register at the same time: one of them registers, and the others find its consumer. A worker that
stops or crashes leaves the consumer registered: it belongs to the application, and AWS bills it until a user
deregisters it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from kainite.aws.failures import Failure, classify, error_code
from kainite.base.errors import StreamError, StreamUnavailableError
from kainite.base.logs import event
from kainite.base.retry import Backoff, retry
from kainite.settings import StreamSettings

if TYPE_CHECKING:
    from types_boto3_kinesis import KinesisClient

logger = logging.getLogger(__name__)

T = TypeVar("T")


def registered_consumer(
    kinesis: KinesisClient, settings: StreamSettings, application: str, pause: Callable[[float], None] = time.sleep
) -> str:
    """Returns the ARN to subscribe with: the settings' own, or the ARN of a registered consumer that is ACTIVE.

    Blocks for at most the number of tries times the backoff of the settings. Needs the permissions
    ``kinesis:DescribeStreamSummary``, ``DescribeStreamConsumer`` and ``RegisterStreamConsumer``.

    Args:
        kinesis: the client.
        settings: the stream; ``consumer_name`` is the application's name by default.
        application: the application's name.
        pause: waits for a number of seconds.

    Raises:
        StreamUnavailableError: all tries were throttled or unanswered, or the consumer does not become ACTIVE.
        StreamError: Kinesis refuses, or the stream has as many registered consumers as it may have.
    """
    if settings.consumer_arn:
        return settings.consumer_arn
    registration = _Registration(kinesis, settings, settings.consumer_name or application, pause)
    return registration.run(settings.arn or registration.stream_arn())


class _Registration:
    def __init__(
        self, kinesis: KinesisClient, settings: StreamSettings, name: str, pause: Callable[[float], None]
    ) -> None:
        self._kinesis = kinesis
        self._settings = settings
        self._name = name
        self._pause = pause

    def stream_arn(self) -> str:
        name = self._settings.name
        answer = self._tried(
            "DescribeStreamSummary",
            self._settings.describe_stream_tries,
            lambda: self._kinesis.describe_stream_summary(StreamName=name),
        )
        return answer["StreamDescriptionSummary"]["StreamARN"]

    def run(self, stream_arn: str) -> str:
        status = None
        for _ in range(max(1, self._settings.describe_consumer_tries)):
            arn, status = self._look(stream_arn) or (None, None)
            if arn is not None and status == "ACTIVE":
                return arn
            if arn is None:
                self._register(stream_arn)
            self._pause(self._settings.consumer_backoff)
        raise StreamUnavailableError(
            f"consumer {self._name!r} of stream {self._settings.name!r} is {status or 'not there'}, not ACTIVE, after "
            f"{self._settings.describe_consumer_tries} tries: start again, or set retrievalMode = POLLING"
        )

    def _look(self, stream_arn: str) -> tuple[str, str] | None:
        """Returns the consumer's ARN and status; None when no consumer has this name."""
        try:
            answer = self._tried(
                "DescribeStreamConsumer",
                self._settings.describe_consumer_tries,
                lambda: self._kinesis.describe_stream_consumer(StreamARN=stream_arn, ConsumerName=self._name),
            )
        except _GoneError:
            return None
        found = answer["ConsumerDescription"]
        return found["ConsumerARN"], found["ConsumerStatus"]

    def _register(self, stream_arn: str) -> None:
        try:
            self._tried(
                "RegisterStreamConsumer",
                self._settings.register_consumer_tries,
                lambda: self._kinesis.register_stream_consumer(StreamARN=stream_arn, ConsumerName=self._name),
            )
        except _TakenError:
            return  # another worker has registered the consumer
        event(logger, logging.INFO, "consumer registered", stream=self._settings.name, consumer=self._name)

    def _tried(self, operation: str, tries: int, call: Callable[[], T]) -> T:
        """Returns the answer of ``call``, which is made again while Kinesis throttles or does not answer."""
        backoff = Backoff((self._settings.consumer_backoff,))
        try:
            return retry(call, backoff, wait=self._pause, retryable=_is_worth_retrying, tries=max(1, tries))
        except Exception as error:
            if error_code(error) == "ResourceInUseException":
                raise _TakenError from error
            if classify(error) is Failure.GONE and operation == "DescribeStreamConsumer":
                raise _GoneError from error
            if not _is_worth_retrying(error):
                raise self._refused(operation, error) from error
            raise self._given_up(operation, error) from error

    def _refused(self, operation: str, error: Exception) -> StreamError:
        return StreamError(
            f"stream {self._settings.name!r}: {operation} is refused, which retrievalMode = FANOUT needs: "
            f"grant it, or set retrievalMode = POLLING ({error})"
        )

    def _given_up(self, operation: str, error: Exception) -> StreamError:
        if error_code(error) == "LimitExceededException":
            return StreamError(
                f"stream {self._settings.name!r}: {operation} exceeds a limit (a stream has at most 20 registered "
                f"consumers): deregister one, or set retrievalMode = POLLING ({error})"
            )
        return StreamUnavailableError(f"stream {self._settings.name!r}: {operation} failed for now: {error}")


def _is_worth_retrying(error: Exception) -> bool:
    # Other calls may succeed after a ResourceInUseException; here it means that the name is taken for good.
    return classify(error).is_retryable and error_code(error) != "ResourceInUseException"


class _GoneError(Exception):
    """Raised when no consumer has the name."""


class _TakenError(Exception):
    """Raised when a consumer of the name is registered already."""
