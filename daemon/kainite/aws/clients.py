"""Makes the clients of AWS services in one place, so that endpoints, credentials, time limits and retries agree.

The clients are botocore's own: importing boto3 takes a command a tenth of a second more, for transfers of files and for
resources, which nothing here uses.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, overload

from kainite import __version__
from kainite.base.errors import SettingsError
from kainite.settings import AwsSettings, ClientSettings
from kainite.settings.credentials import CredentialsSource, Provider, show_chain

if TYPE_CHECKING:
    from botocore.config import Config
    from botocore.loaders import Loader
    from botocore.session import Session
    from types_boto3_cloudwatch import CloudWatchClient
    from types_boto3_dynamodb import DynamoDBClient
    from types_boto3_kinesis import KinesisClient
    from types_boto3_s3 import S3Client

MAX_CONNECTIONS = 256

_CHECKED = {"dynamodb": ("DynamoDB", "dynamoDBEndpoint"), "kinesis": ("Kinesis", "kinesisEndpoint")}
"""The services whose replies are looked at, each with its name and the settings' key of its endpoint."""


@overload
def client(service: Literal["kinesis"], settings: AwsSettings) -> KinesisClient: ...
@overload
def client(service: Literal["dynamodb"], settings: AwsSettings) -> DynamoDBClient: ...
@overload
def client(service: Literal["cloudwatch"], settings: AwsSettings) -> CloudWatchClient: ...
@overload
def client(service: Literal["s3"], settings: AwsSettings) -> S3Client: ...
def client(
    service: Literal["kinesis", "dynamodb", "cloudwatch", "s3"], settings: AwsSettings
) -> KinesisClient | DynamoDBClient | CloudWatchClient | S3Client:
    """Returns a client, which threads may share.

    Where the settings say nothing, credentials and the region come from boto3's default chain.

    Raises:
        SettingsError: no region, or no credentials, are set anywhere.
    """
    from botocore.exceptions import BotoCoreError, NoRegionError

    from kainite.aws.foreign_replies import refuse_foreign_replies

    own, endpoint = _of_service(service, settings)
    region = own.region or settings.region
    try:
        session = _session(own.credentials or settings.kinesis.credentials, region)
        # A client made without credentials never finds any, so waiting for them would be in vain.
        if session.get_credentials() is None:
            raise SettingsError(_no_credentials(own, settings))
        made: Any = session.create_client(
            service, region_name=region, endpoint_url=endpoint, config=_config(settings, own, _user_agent(session))
        )
    except NoRegionError as error:
        raise SettingsError("no AWS region: set regionName in the settings file, or AWS_DEFAULT_REGION") from error
    except BotoCoreError as error:
        raise SettingsError(f"no {service} client can be made of these settings: {error}") from error
    if service in _CHECKED:
        refuse_foreign_replies(made, *_CHECKED[service])
    return made  # type: ignore[no-any-return]


def frozen_credentials(settings: AwsSettings) -> Provider:
    """Returns the credentials of DynamoDB's client as they are now, for another process; the credentials may expire.

    Raises:
        SettingsError: there are none, or they cannot be had.
    """
    from botocore.exceptions import BotoCoreError

    own, _ = _of_service("dynamodb", settings)
    try:
        found = _session(own.credentials or settings.kinesis.credentials, own.region or settings.region)
        credentials = found.get_credentials()
        if credentials is None:
            raise SettingsError(_no_credentials(own, settings))
        frozen = credentials.get_frozen_credentials()
    except BotoCoreError as error:
        raise SettingsError(f"no AWS credentials can be had: {error}") from error
    parts = (frozen.access_key, frozen.secret_key, frozen.token)
    return Provider("StaticCredentialsProvider", CredentialsSource.STATIC, tuple(part for part in parts if part))


def _of_service(service: str, settings: AwsSettings) -> tuple[ClientSettings, str | None]:
    return {
        "kinesis": (settings.kinesis, settings.kinesis_endpoint),
        "dynamodb": (settings.dynamodb, settings.dynamodb_endpoint),
        "cloudwatch": (settings.cloudwatch, settings.cloudwatch_endpoint),
        # The audit trail belongs to the log, so it is where DynamoDB is.
        "s3": (settings.dynamodb, settings.s3_endpoint),
    }[service]


def _session(providers: tuple[Provider, ...], region: str | None) -> Session:
    from botocore.session import Session

    if providers:
        from kainite.aws.credentials import session_with

        session = session_with(providers, region)
    else:
        session = Session()
    session.register_component("data_loader", _service_models(session.get_config_variable("data_path")))
    return session


@cache
def _service_models(data_path: str | None) -> Loader:
    """Returns the loader of the services' descriptions, which all sessions share: each one's own parses them anew."""
    from kainite.aws.service_models import ServiceModels

    return ServiceModels(data_path)


def _config(settings: AwsSettings, own: ClientSettings, user_agent: str) -> Config:
    from botocore.config import Config

    return Config(
        user_agent=user_agent,
        connect_timeout=settings.connect_timeout,
        read_timeout=settings.read_timeout,
        max_pool_connections=MAX_CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": settings.tries},
        tcp_keepalive=True,
        use_dualstack_endpoint=own.dualstack or None,
        use_fips_endpoint=own.fips or None,
        # LocalStack and MinIO have one host name for all buckets.
        s3={"addressing_style": "path"} if settings.s3_endpoint else None,
    )


def _user_agent(session: Session) -> str:
    """Returns the name by which a client calls itself, with the application's id where the user has set one for AWS.

    botocore would make a name of its own anew for each call, from the host and the settings: a tenth of the processor
    time of a call.
    """
    from botocore import __version__ as release

    app = session.get_config_variable("user_agent_appid")
    return f"kainite/{__version__} Botocore/{release}{f' app/{app}' if app else ''}"


def _no_credentials(own: ClientSettings, settings: AwsSettings) -> str:
    providers = own.credentials or settings.kinesis.credentials
    if providers:
        return f"no AWS credentials: none of {show_chain(providers)} has any on this host"
    return "no AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile or a role"
