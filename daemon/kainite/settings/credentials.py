"""Chains of credentials providers, as KCL's ``AwsCredentialsProvider`` keys name them; pure text, no calls of AWS.

A comma separates providers: the first one that has credentials is used. ``|`` separates a provider's name from its
arguments, and arguments that hold ``=`` are named ones (KCL: AwsCredentialsProviderPropertyValueDecoder and
NestedPropertyKey)::

    StsAssumeRoleCredentialsProvider|ROLE-ARN|SESSION|endpoint=URL^REGION|externalId=ID,DefaultCredentialsProvider

Names are those of both SDKs for Java, with or without their package.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kainite.base.redaction import redacted_url, secrets_in_url
from kainite.settings.kinds.values import ValueKind


class CredentialsSource(StrEnum):
    """The source of credentials that stands in for a provider of the SDK for Java."""

    DEFAULT = "boto3's default chain"
    ENVIRONMENT = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    PROFILE = "a profile of ~/.aws"
    CONTAINER = "the container's role (ECS, EKS)"
    INSTANCE = "the instance's role (EC2)"
    CONTAINER_OR_INSTANCE = "the container's role, else the instance's"
    WEB_IDENTITY = "a web identity token file"
    STATIC = "a key in the file"
    ASSUME_ROLE = "a role that is assumed, and assumed again before it expires"
    JVM = "nothing: a process without a JVM has no system properties"


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider of a chain; its arguments may be secrets.

    Attributes:
        name: the name as it was written, without its package.
        source: the source of credentials that stands in for the provider.
        arguments: the arguments in the order in which they follow the name.
        named: the arguments that were written ``name=value``.
    """

    name: str
    source: CredentialsSource
    arguments: tuple[str, ...] = field(default=(), repr=False)
    named: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    def get(self, name: str) -> str | None:
        """Returns a named argument; None where it is missing."""
        return dict(self.named).get(name)


NAMES: Mapping[str, CredentialsSource] = {
    "DefaultCredentialsProvider": CredentialsSource.DEFAULT,
    "DefaultAWSCredentialsProviderChain": CredentialsSource.DEFAULT,
    "EnvironmentVariableCredentialsProvider": CredentialsSource.ENVIRONMENT,
    "ProfileCredentialsProvider": CredentialsSource.PROFILE,
    "ContainerCredentialsProvider": CredentialsSource.CONTAINER,
    "EC2ContainerCredentialsProviderWrapper": CredentialsSource.CONTAINER_OR_INSTANCE,
    "InstanceProfileCredentialsProvider": CredentialsSource.INSTANCE,
    "WebIdentityTokenFileCredentialsProvider": CredentialsSource.WEB_IDENTITY,
    "WebIdentityTokenCredentialsProvider": CredentialsSource.WEB_IDENTITY,
    "StaticCredentialsProvider": CredentialsSource.STATIC,
    "AWSStaticCredentialsProvider": CredentialsSource.STATIC,
    "StsAssumeRoleCredentialsProvider": CredentialsSource.ASSUME_ROLE,
    "KclStsAssumeRoleCredentialsProvider": CredentialsSource.ASSUME_ROLE,
    "STSAssumeRoleSessionCredentialsProvider": CredentialsSource.ASSUME_ROLE,
    "KclSTSAssumeRoleSessionCredentialsProvider": CredentialsSource.ASSUME_ROLE,
    "SystemPropertyCredentialsProvider": CredentialsSource.JVM,
    "SystemPropertiesCredentialsProvider": CredentialsSource.JVM,
}
_ARGUMENTS: Mapping[CredentialsSource, tuple[int, int, str]] = {
    CredentialsSource.PROFILE: (0, 1, "|PROFILE, or nothing"),
    CredentialsSource.STATIC: (2, 3, "|KEY-ID|SECRET, or |KEY-ID|SECRET|TOKEN"),
    CredentialsSource.ASSUME_ROLE: (2, 2, "|ROLE-ARN|SESSION"),
}
_NAMED = ("endpoint", "endpointRegion", "externalId")
_SECRET = "***"
_ALLOWED = "credentials providers separated by commas, each NAME or NAME|ARGUMENT|…"


def parse_chain(value: str) -> tuple[Provider, ...]:
    """Returns the chain of providers that a property's text names.

    Raises:
        ValueError: the text is wrong; the message never shows an argument.
    """
    chain = tuple(_provider(item.strip()) for item in value.split(",") if item.strip())
    if not chain:
        raise ValueError("names no credentials provider")
    return chain


def show_chain(chain: tuple[Provider, ...]) -> str:
    """Returns the chain as it may be shown: without keys, secrets, tokens and external ids."""
    return ",".join(map(_show, chain))


def credentials_chain() -> ValueKind:
    """Returns the kind of a chain of providers."""
    return ValueKind(_ALLOWED, lambda value, folder: parse_chain(value), show_chain, secrets=_secrets)


def endpoint_of(provider: Provider) -> tuple[str | None, str | None]:
    """Returns endpoint and region of STS; None where botocore's own are meant."""
    url, _, region = (provider.get("endpoint") or "").partition("^")
    return url or None, region or provider.get("endpointRegion")


def _secrets(value: str) -> tuple[str, ...]:
    """Returns the keys, secrets, tokens and external ids in a chain's text, also of a provider that is misspelled."""
    found: list[str] = []
    for item in value.split(","):
        full, *arguments = (part.strip() for part in item.split("|"))
        named = NAMES.get(full.rpartition(".")[2])
        for argument in arguments:
            name, equals, text = argument.partition("=")
            if equals and name in _NAMED:
                found += [text] if name == "externalId" else secrets_in_url(text)
            elif named in (CredentialsSource.STATIC, None):
                found.append(argument)
    return tuple(found)


def _provider(item: str) -> Provider:
    full, *rest = (part.strip() for part in item.split("|"))
    name = full.rpartition(".")[2]
    source = NAMES.get(name)
    if source is None:
        raise ValueError(_unknown(name))
    arguments = tuple(part for part in rest if part.partition("=")[0] not in _NAMED)
    pairs = tuple((key, value) for key, _, value in (part.partition("=") for part in rest) if key in _NAMED)
    provider = Provider(name, source, arguments, pairs)
    _check(provider)
    return provider


def _check(provider: Provider) -> None:
    fewest, most, form = _ARGUMENTS.get(provider.source, (0, 0, "no argument"))
    if not fewest <= len(provider.arguments) <= most or not all(provider.arguments):
        raise ValueError(f"{provider.name} takes {form}, and here are {len(provider.arguments)} arguments")
    if provider.named and provider.source is not CredentialsSource.ASSUME_ROLE:
        raise ValueError(f"{provider.name} takes no {provider.named[0][0]}")
    endpoint = provider.get("endpoint")
    if endpoint is not None and not all(endpoint.partition("^")):
        raise ValueError(f"{provider.name}: endpoint must be URL^REGION")


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, NAMES, n=1)
    hint = f", did you mean {near[0]}?" if near else ""
    return f"{name!r} is no credentials provider{hint}; known are {', '.join(NAMES)}"


def _show(provider: Provider) -> str:
    hidden = provider.source is CredentialsSource.STATIC
    arguments = [_SECRET if hidden else argument for argument in provider.arguments]
    named = [f"{key}={_SECRET if key == 'externalId' else redacted_url(value)}" for key, value in provider.named]
    return "|".join([provider.name, *arguments, *named])
