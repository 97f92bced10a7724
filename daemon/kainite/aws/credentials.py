"""Loads credentials from the providers that the settings name, with botocore's own parts.

The providers are tried in order; a provider that cannot be used on this host is skipped with a line in the log, as in
Java. botocore renews roles and tokens before they expire. This module imports botocore, so it is imported late.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.credentials import AssumeRoleCredentialFetcher, Credentials, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError, ClientError
from botocore.session import Session

from kainite.base.logs import event
from kainite.settings.credentials import CredentialsSource, Provider, endpoint_of, show_chain

if TYPE_CHECKING:
    from botocore.credentials import CredentialResolver

logger = logging.getLogger(__name__)

_PROFILE_METHODS = (
    "assume-role",
    "assume-role-with-web-identity",
    "sso",
    "shared-credentials-file",
    "custom-process",
    "config-file",
)


class Chain:
    """botocore's ``credential_provider`` component, made of the providers of the settings.

    Args:
        providers: the providers, in the order in which they are tried.
        region: the region of STS for a provider that names none.
    """

    def __init__(self, providers: Sequence[Provider], region: str | None) -> None:
        self._providers = providers
        self._region = region

    def load_credentials(self) -> Credentials | None:
        """Returns the credentials of the first provider that has some; None when no provider has any."""
        for provider in self._providers:
            try:
                found = _LOADERS[provider.source](provider, self._region)
                if found is not None:
                    # A role is assumed at its first use. Use it now, while another provider can still replace it.
                    if len(self._providers) > 1:
                        found.get_frozen_credentials()
                    return found
                why = "it has no credentials on this host"
            except (BotoCoreError, ClientError) as error:
                why = str(error)
            event(logger, logging.WARNING, "credentials provider skipped", provider=show_chain((provider,)), reason=why)
        return None


def session_with(providers: Sequence[Provider], region: str | None) -> Session:
    """Returns a botocore session whose credentials come from ``providers``; ``region`` is as for :class:`Chain`."""
    session = Session()
    session.register_component("credential_provider", Chain(providers, region))
    return session


def _default(provider: Provider, region: str | None) -> Credentials | None:
    return Session().get_credentials()


def _profile(provider: Provider, region: str | None) -> Credentials | None:
    name = provider.arguments[0] if provider.arguments else os.environ.get("AWS_PROFILE", "default")
    return _first(Session(profile=name), _PROFILE_METHODS)


def _methods(*methods: str) -> Callable[[Provider, str | None], Credentials | None]:
    return lambda provider, region: _first(Session(), methods)


def _first(session: Session, methods: Sequence[str]) -> Credentials | None:
    resolver: CredentialResolver = session.get_component("credential_provider")
    found = (resolver.get_provider(method).load() for method in methods)
    return next((credentials for credentials in found if credentials is not None), None)


def _static(provider: Provider, region: str | None) -> Credentials:
    key_id, secret, *token = provider.arguments
    return Credentials(key_id, secret, token[0] if token else None, method="static")


def _assume_role(provider: Provider, region: str | None) -> Credentials | None:
    session = Session()
    source = session.get_credentials()
    if source is None:
        return None
    endpoint, own_region = endpoint_of(provider)
    create = functools.partial(session.create_client, endpoint_url=endpoint, region_name=own_region or region)
    role, name = provider.arguments
    external = provider.get("externalId")
    more = {"RoleSessionName": name} | ({"ExternalId": external} if external else {})
    fetcher = AssumeRoleCredentialFetcher(create, source, role, extra_args=more)
    return DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role")


_LOADERS: Mapping[CredentialsSource, Callable[[Provider, str | None], Credentials | None]] = {
    CredentialsSource.DEFAULT: _default,
    CredentialsSource.ENVIRONMENT: _methods("env"),
    CredentialsSource.PROFILE: _profile,
    CredentialsSource.CONTAINER: _methods("container-role"),
    CredentialsSource.INSTANCE: _methods("iam-role"),
    CredentialsSource.CONTAINER_OR_INSTANCE: _methods("container-role", "iam-role"),
    CredentialsSource.WEB_IDENTITY: _methods("assume-role-with-web-identity"),
    CredentialsSource.STATIC: _static,
    CredentialsSource.ASSUME_ROLE: _assume_role,
    CredentialsSource.JVM: lambda provider, region: None,
}
