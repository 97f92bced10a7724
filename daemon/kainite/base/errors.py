"""Every error that Kainite raises on purpose.

::

    KainiteError
     +-- SettingsError            a setting is missing, unknown or wrong: the user corrects the file
     +-- MissingExtraError        an optional package is not installed: the message names the extra
     +-- DeltaError               a child emitted a line that is not a delta: its unit fails
     +-- CatalogueError           the target's tables cannot be used as they are
     |    +-- OtherLogError           another log writes some of them
     +-- ChildError               the child process broke
     |    +-- ChildProtocolError      it wrote what its dialect forbids at this point
     |    +-- ChildExitedError        its process ended or closed its output
     |    |    +-- ChildTryLaterError      it says by its exit status that what it works with is away
     |    +-- ChildTimeoutError       it did not answer in time
     +-- MessageRefusedError      a message for a child holds one of the markers that part messages
     +-- StreamError              the Kinesis stream does not exist, or refuses to be read
     |    +-- StreamUnavailableError  it did not answer, or throttles
     +-- LeaseTableError          the lease table is missing, or refuses the call
     |    +-- LeaseTableUnavailableError  it did not answer, or throttles
     +-- LeaseLostError           another worker holds the lease now
     +-- FleetError               the fleet's table is missing, or refuses the call; or a duty is not as it must be
     |    +-- FleetUnavailableError    the table did not answer, or throttles
     +-- LogError                 the serialization log
     |    +-- LogFencedError          another owner mounted this log partition
     |    +-- LogHeldError            another owner's lease is still running
     |    +-- LogCorruptError         a stored batch does not read back as written
     |    +-- LogUnavailableError     the store did not answer, or the owner has stopped
     |    |    +-- LogHandedOverError      a person has asked that another process own the log
     |    +-- LogRequestError         a request that the log's state forbids (retry of a committed unit)
     |    +-- LogAppendError          an append on which the log's owner cannot decide: an error in Kainite itself
     |    +-- LogProtocolError        a peer of the log's service wrote what its protocol forbids
     +-- TargetError              the relational target
          +-- TargetRejectedError     it refused a unit's rows: the unit fails, the rest goes on
          +-- TargetUnavailableError  it could not be reached, or asked to try again
          |    +-- TargetInterruptedError  it broke off in the middle of a request, which may be the reason
          +-- TargetBusyError         it could not take these rows in time, or so many bytes; others it may take
          +-- TargetFencedError       a newer apply job, or micro-batch, owns the target
          +-- TargetWentBackError     it lacks what the log has as committed: it was restored, or is another one
     +-- SparkUnavailableError    a Spark job did not end, or no session can be had
     |    +-- SparkStalledError       no task of a Spark job has run for too long
     +-- StoppedError             a stop came while a start waited for something that is away
     +-- SourceError              a source sent what cannot be carried, or its place in it was lost
     +-- DemoError                kainite demo found a difference, or one of its parts broke

Messages say what, where and what to do, in one line. ``retryable`` says whether the same call
may succeed later without anybody mending anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar


class KainiteError(Exception):
    """Base of all errors above."""

    retryable: ClassVar[bool] = False


class SettingsError(KainiteError):
    pass


class MissingExtraError(KainiteError):
    pass


class DeltaError(KainiteError):
    pass


class CatalogueError(KainiteError):
    pass


class OtherLogError(CatalogueError):
    """Names the tables that other logs write.

    Attributes:
        others: the names of the other logs, by the full names of their tables.
    """

    def __init__(self, message: str, others: Mapping[str, str]) -> None:
        super().__init__(message, others)
        self.others = others

    def __str__(self) -> str:
        return str(self.args[0])


class ChildError(KainiteError):
    retryable = True


class ChildProtocolError(ChildError):
    pass


class ChildExitedError(ChildError):
    pass


class ChildTryLaterError(ChildExitedError):
    pass


class ChildTimeoutError(ChildError):
    pass


class MessageRefusedError(KainiteError):
    pass


class StreamError(KainiteError):
    pass


class StreamUnavailableError(StreamError):
    retryable = True


class LeaseTableError(KainiteError):
    pass


class LeaseTableUnavailableError(LeaseTableError):
    retryable = True


class LeaseLostError(KainiteError):
    pass


class FleetError(KainiteError):
    pass


class FleetUnavailableError(FleetError):
    retryable = True


class LogError(KainiteError):
    pass


class LogFencedError(LogError):
    pass


class LogHeldError(LogError):
    retryable = True


class LogCorruptError(LogError):
    pass


class LogUnavailableError(LogError):
    retryable = True


class LogHandedOverError(LogUnavailableError):
    pass


class LogRequestError(LogError):
    pass


class LogAppendError(LogError):
    pass


class LogProtocolError(LogError):
    pass


class TargetError(KainiteError):
    pass


class TargetRejectedError(TargetError):
    pass


class TargetUnavailableError(TargetError):
    retryable = True


class TargetInterruptedError(TargetUnavailableError):
    pass


class TargetBusyError(TargetError):
    retryable = True


class TargetFencedError(TargetError):
    pass


class TargetWentBackError(TargetError):
    pass


class SparkUnavailableError(KainiteError):
    pass


class SparkStalledError(SparkUnavailableError):
    pass


class StoppedError(KainiteError):
    pass


class SourceError(KainiteError):
    pass


class DemoError(KainiteError):
    pass
