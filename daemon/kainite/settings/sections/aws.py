"""The section for AWS: regions, endpoints, time limits, and what each service's client has for itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.settings.credentials import Provider, credentials_chain
from kainite.settings.key import Reload, kcl, own, section
from kainite.settings.kinds.values import flag, http_url, millis, text

_REGION = text("a region like eu-west-1", r"[a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one service's client, which :class:`AwsSettings` has three times.

    The keys are those of the SDK's client builder that KCL reaches by reflection and that boto3 has too.
    """

    credentials: tuple[Provider, ...] = kcl(
        "AwsCredentialsProvider{of}",
        credentials_chain(),
        Reload.RESTART,
        "Where credentials for {service} come from: the first provider that has some.",
        default=(),
        otherwise="{credentials}",
    )
    region: str | None = kcl(
        "{client}.region", _REGION, Reload.RESTART, "The region of {service}.", default=None, otherwise="{region}"
    )
    dualstack: bool = kcl(
        "{client}.dualstackEnabled", flag(), Reload.RESTART, "Whether {service} is reached by IPv6 too.", default=False
    )
    fips: bool = kcl(
        "{client}.fipsEnabled", flag(), Reload.RESTART, "Whether {service}'s FIPS endpoint is used.", default=False
    )


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """The settings of all calls to AWS."""

    region: str | None = kcl(
        "regionName", _REGION, Reload.RESTART, "The AWS region.", default=None, otherwise="streamArn's, else boto3's"
    )
    kinesis_endpoint: str | None = kcl(
        "kinesisEndpoint",
        http_url(),
        Reload.RESTART,
        "Kinesis, where it is not AWS's.",
        default=None,
        aliases=("kinesisClient.endpointOverride",),
        secret=True,
    )
    dynamodb_endpoint: str | None = kcl(
        "dynamoDBEndpoint",
        http_url(),
        Reload.RESTART,
        "DynamoDB, where it is not AWS's.",
        default=None,
        aliases=("dynamoDbClient.endpointOverride",),
        secret=True,
    )
    cloudwatch_endpoint: str | None = kcl(
        "cloudWatchEndpoint",
        http_url(),
        Reload.RESTART,
        "CloudWatch, where it is not AWS's (KCL has only the longer spelling).",
        default=None,
        aliases=("cloudWatchClient.endpointOverride",),
        secret=True,
    )
    s3_endpoint: str | None = own(
        "s3Endpoint",
        http_url(),
        Reload.RESTART,
        "S3, where it is not AWS's. Region and credentials are DynamoDB's: the audit trail belongs to the log.",
        default=None,
        secret=True,
    )
    # The longest wait for a connection. A host that does not answer the first packet, nor those that TCP sends after 1
    # and 3 s, is better tried anew.
    connect_timeout: float = 5.0
    read_timeout: float = own(
        "awsReadTimeoutMillis", millis(100, 600_000), Reload.RESTART, "Longest wait for an answer of AWS.", default=30.0
    )
    # The most tries of one call: few, since each part that calls AWS tries again by itself, with longer pauses and with
    # a line in the log.
    tries: int = 3
    kinesis: ClientSettings = field(
        default_factory=ClientSettings,
        metadata=section(
            "The client of Kinesis",
            service="Kinesis",
            client="kinesisClient",
            of="",
            credentials="boto3's default chain",
            region="streamArn's, else regionName",
        ),
    )
    dynamodb: ClientSettings = field(
        default_factory=ClientSettings,
        metadata=section(
            "The client of DynamoDB",
            service="DynamoDB",
            client="dynamoDbClient",
            of="DynamoDB",
            credentials="AwsCredentialsProvider's",
            region="regionName",
        ),
    )
    cloudwatch: ClientSettings = field(
        default_factory=ClientSettings,
        metadata=section(
            "The client of CloudWatch",
            service="CloudWatch",
            client="cloudWatchClient",
            of="CloudWatch",
            credentials="AwsCredentialsProvider's",
            region="regionName",
        ),
    )
