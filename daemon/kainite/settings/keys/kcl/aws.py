"""KCL's keys for AWS itself: regions, endpoints, credentials and the nested settings of the three clients."""

from __future__ import annotations

from kainite.settings.credentials import credentials
from kainite.settings.keys.key import Key
from kainite.settings.kinds.values import flag, http_url, text

_REGION = text("a region like eu-west-1", r"[a-z0-9-]+")

_CREDENTIALS = (
    Key(
        "AwsCredentialsProvider",
        "kinesis_client",
        "credentials",
        credentials(),
        "Where credentials come from: the first provider that has some.",
        default="boto3's default chain",
    ),
    Key(
        "AwsCredentialsProviderDynamoDB",
        "dynamodb_client",
        "credentials",
        credentials(),
        "Where credentials for DynamoDB come from.",
        default="AwsCredentialsProvider's",
    ),
    Key(
        "AwsCredentialsProviderCloudWatch",
        "cloudwatch_client",
        "credentials",
        credentials(),
        "Where credentials for CloudWatch come from.",
        default="AwsCredentialsProvider's",
    ),
)


def _client(prefix: str, section: str, service: str, region: str) -> tuple[Key, ...]:
    """Returns the keys of the SDK's client builder that KCL reaches by reflection and that boto3 has too."""
    return (
        Key(f"{prefix}.region", section, "region", _REGION, f"The region of {service}.", default=region),
        Key(f"{prefix}.dualstackEnabled", section, "dualstack", flag(), f"Whether {service} is reached by IPv6 too."),
        Key(f"{prefix}.fipsEnabled", section, "fips", flag(), f"Whether {service}'s FIPS endpoint is used."),
    )


KEYS: tuple[Key, ...] = (
    Key("regionName", "aws", "region", _REGION, "The AWS region.", default="streamArn's, else boto3's"),
    Key(
        "kinesisEndpoint",
        "aws",
        "kinesis_endpoint",
        http_url(),
        "Kinesis, where it is not AWS's.",
        aliases=("kinesisClient.endpointOverride",),
    ),
    Key(
        "dynamoDBEndpoint",
        "aws",
        "dynamodb_endpoint",
        http_url(),
        "DynamoDB, where it is not AWS's.",
        aliases=("dynamoDbClient.endpointOverride",),
    ),
    Key(
        "cloudWatchEndpoint",
        "aws",
        "cloudwatch_endpoint",
        http_url(),
        "CloudWatch, where it is not AWS's (KCL has only the longer spelling).",
        aliases=("cloudWatchClient.endpointOverride",),
    ),
    *_CREDENTIALS,
    *_client("kinesisClient", "kinesis_client", "Kinesis", "streamArn's, else regionName"),
    *_client("dynamoDbClient", "dynamodb_client", "DynamoDB", "regionName"),
    *_client("cloudWatchClient", "cloudwatch_client", "CloudWatch", "regionName"),
)
