"""Who a login is of, by what the provider tells: the id token's claims, or what its userinfo endpoint adds. Pure.

A claim counts from the id token. Only one that the token lacks is taken from the userinfo endpoint, which is asked for
nothing else. ``email`` and ``email_verified`` are read from the same place, or the one would vouch for the other's
address.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from kainite.base.display import is_plain
from kainite.console.access import LOCAL, RefusedRequest
from kainite.settings import ConsoleSettings

MOST_NAME: Final = 200

_Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WantedClaims:
    """What is read of the provider's claims.

    Attributes:
        name: the claim with the user's name.
        groups: users in one of these groups may look; empty: all whom the provider lets in.
        groups_claim: the claim with the user's groups.
    """

    name: str
    groups: frozenset[str]
    groups_claim: str

    @classmethod
    def of(cls, settings: ConsoleSettings) -> WantedClaims:
        """Returns what the settings ask for."""
        return cls(settings.oidc_claim, frozenset(settings.oidc_groups), settings.oidc_groups_claim)

    def lacks(self, token: _Claims) -> bool:
        """Tells whether an id token lacks a claim that is read."""
        wanted = (self.name, self.groups_claim) if self.groups else (self.name,)
        return any(token.get(claim) is None for claim in wanted)

    def user(self, token: _Claims, told: _Claims) -> str | RefusedRequest:
        """Returns who has logged in, or why they may not look.

        Args:
            token: the claims of the id token.
            told: those of the userinfo endpoint; empty where it was not asked.
        """
        found = _with(self.name, token, told)
        name = found.get(self.name)
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not is_plain(name) or name == LOCAL:
            return RefusedRequest(403, f"the provider tells no {self.name} that names a user (consoleOidcClaim)")
        if self.name == "email" and found.get("email_verified") not in (True, "true"):
            return RefusedRequest(403, f"the provider has not verified the address {name}")
        if self.groups and self.groups.isdisjoint(_groups(_with(self.groups_claim, token, told)[self.groups_claim])):
            return RefusedRequest(403, f"{name} is in no group that may look (consoleOidcGroups)")
        return name


def _with(claim: str, token: _Claims, told: _Claims) -> _Claims:
    """Returns the claims among which one is read; it is None there where nobody tells it."""
    return {claim: None, **(token if token.get(claim) is not None else told)}


def _groups(value: Any) -> set[str]:
    """Returns the groups of a claim: a list of names, or a single name."""
    given = value if isinstance(value, list) else [value]
    return {group for group in given if isinstance(group, str)}
