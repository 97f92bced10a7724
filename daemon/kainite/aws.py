"""Clients of AWS services, made in one place so that endpoints, time limits and retries agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, overload

from kainite.errors import SettingsError
from kainite.settings import AwsSettings

if TYPE_CHECKING:
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_kinesis import KinesisClient

CONNECT_TIMEOUT_S = 5
READ_TIMEOUT_S = 30
MAX_CONNECTIONS = 256


@overload
def client(service: Literal["kinesis"], settings: AwsSettings) -> KinesisClient: ...
@overload
def client(service: Literal["dynamodb"], settings: AwsSettings) -> DynamoDBClient: ...
@overload
def client(service: Literal["cloudwatch"], settings: AwsSettings) -> CloudWatchClient: ...
def client(
    service: Literal["kinesis", "dynamodb", "cloudwatch"], settings: AwsSettings
) -> KinesisClient | DynamoDBClient | CloudWatchClient:
    """Make a client; it may be shared by threads.

    Credentials, and the region where the settings name none, come from boto3's default chain.

    Raises:
        SettingsError: no region, or no credentials, are set anywhere.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import NoRegionError

    config = Config(
        connect_timeout=CONNECT_TIMEOUT_S,
        read_timeout=READ_TIMEOUT_S,
        max_pool_connections=MAX_CONNECTIONS,
        retries={"mode": "standard", "max_attempts": 3},
        tcp_keepalive=True,
    )
    endpoints = {
        "kinesis": settings.kinesis_endpoint,
        "dynamodb": settings.dynamodb_endpoint,
        "cloudwatch": settings.cloudwatch_endpoint,
    }
    session = boto3.Session()
    # A client made without credentials never finds any, so waiting for them would be in vain.
    if session.get_credentials() is None:
        raise SettingsError("no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role")
    try:
        return session.client(service, region_name=settings.region, endpoint_url=endpoints[service], config=config)
    except NoRegionError as error:
        raise SettingsError("no AWS region: set regionName in the settings file, or AWS_DEFAULT_REGION") from error
