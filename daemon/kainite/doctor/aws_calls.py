"""Makes one call of AWS, and says what its answer means for the role."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from kainite.aws.failures import Failure, classify
from kainite.doctor.finding import DoctorFinding, well, wrong
from kainite.settings import AwsSettings

CALL_S: Final = 4.0
"""Seconds to connect to AWS, and for an answer; there is one try. Less than the limit of a check, so that the cause is
AWS's own words."""

_REMEDIES: Final = {
    Failure.REFUSED: "look at the credentials: AWS_PROFILE, AWS_ACCESS_KEY_ID, AwsCredentialsProvider",
    Failure.PASSING: "look at the endpoint, the region and the network; then ask again",
    Failure.THROTTLED: "ask again",
    Failure.GONE: "look at the names, and at regionName",
}


def hurried(aws: AwsSettings) -> AwsSettings:
    """Returns settings with which a call is made once and ends soon."""
    return replace(aws, connect_timeout=CALL_S, read_timeout=CALL_S, tries=1)


def refused(area: str, action: str, error: Exception, policy: str) -> DoctorFinding:
    """Returns the finding for a call that failed.

    Args:
        area: where it belongs.
        action: the call, as IAM names it.
        error: botocore's.
        policy: the policy of docs/aws/iam that allows it.
    """
    failure = classify(error)
    if failure is Failure.DENIED:
        return wrong(area, f"{action} is denied", f"allow it: docs/aws/iam/{policy}.json has the statement")
    return wrong(area, f"{action}: {error}", _REMEDIES.get(failure, ""))


def allowed(area: str, action: str, call: Callable[[], Any], policy: str) -> tuple[DoctorFinding | None, Any]:
    """Makes a call that changes nothing; returns what is wrong with it, if anything, and its answer.

    A condition that does not hold is an answer too: IAM has let the call pass.
    """
    try:
        return None, call()
    except (ClientError, BotoCoreError) as error:
        if classify(error) is Failure.CONDITION:
            return None, None
        return refused(area, action, error, policy), None


def rights(area: str, where: str, calls: dict[str, Callable[[], Any]], policy: str) -> list[DoctorFinding]:
    """Makes calls that change nothing; returns one finding where all are allowed, else one for each that is not."""
    found = [finding for action, call in calls.items() if (finding := allowed(area, action, call, policy)[0])]
    names = ", ".join(action.partition(":")[2] for action in calls)
    return found or [well(area, f"{where}: the role may {names}")]
