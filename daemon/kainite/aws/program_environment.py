"""The AWS credentials that a program finds which this process starts: this process's, a profile's, or none.

A program of the same user can read that user's files, so a profile parts the rights of programs that behave, and of
what somebody injects into one. What must hold against a hostile program needs a user of its own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final

NO_PROFILE: Final = "none"
"""The profile's name that means: no credentials at all."""

_BEFORE_PROFILES: Final = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
"""The variables by which AWS's libraries find credentials before they look into a profile (AWS SDKs and Tools Reference
Guide, standardized credential providers)."""

_OF_CONTAINERS: Final = (
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
)
"""Those of a container's role. They stay with a profile: its role may be assumed by them (``credential_source``)."""

_NONE: Final = {
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_CONFIG_FILE": os.devnull,
}


def program_environment(profile: str | None, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Returns the environment of a program.

    Args:
        profile: a profile of AWS's configuration files, :data:`NO_PROFILE`, or None for this process's credentials.
        environment: this process's.
    """
    if profile is None:
        return dict(environment)
    kept = {name: value for name, value in environment.items() if name not in _BEFORE_PROFILES}
    if profile != NO_PROFILE:
        return kept | {"AWS_PROFILE": profile}
    return {name: value for name, value in kept.items() if name not in _OF_CONTAINERS} | _NONE
