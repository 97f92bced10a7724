"""The section for AWS: regions, endpoints, time limits, and what each service's client has for itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from kainite.settings.credentials import Provider


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one service's client.

    Attributes:
        region: the service's region; None: as :class:`AwsSettings` says.
        dualstack: whether the endpoint for IPv4 and IPv6 is used.
        fips: whether the FIPS endpoint is used.
        credentials: the chain of providers; empty: the chain of Kinesis.
    """

    region: str | None = None
    dualstack: bool = False
    fips: bool = False
    credentials: tuple[Provider, ...] = ()


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """The settings of all calls to AWS.

    Attributes:
        region: the AWS region; None: boto3's own.
        kinesis_endpoint, dynamodb_endpoint, cloudwatch_endpoint, s3_endpoint: URLs, where they are not AWS's own;
            ``repr`` leaves them out, since they may hold a password.
        connect_timeout: longest wait for a connection, seconds.
        read_timeout: longest wait for a reply, seconds.
        tries: most tries of one call.
        kinesis, dynamodb, cloudwatch: what each client has for itself.
    """

    region: str | None = None
    kinesis_endpoint: str | None = field(default=None, repr=False)
    dynamodb_endpoint: str | None = field(default=None, repr=False)
    cloudwatch_endpoint: str | None = field(default=None, repr=False)
    s3_endpoint: str | None = field(default=None, repr=False)
    connect_timeout: float = 5.0
    read_timeout: float = 30.0
    tries: int = 3
    kinesis: ClientSettings = field(default_factory=ClientSettings)
    dynamodb: ClientSettings = field(default_factory=ClientSettings)
    cloudwatch: ClientSettings = field(default_factory=ClientSettings)
