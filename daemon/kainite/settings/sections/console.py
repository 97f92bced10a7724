"""The section for the operator's console: where it listens, who may look, who may act, and what it shows of rows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from kainite.base.address import Address
from kainite.settings.key import Reload, own
from kainite.settings.kinds.values import address, choice, http_url, names, path, text


class RowDisplay(StrEnum):
    """What the console shows of the values of rows."""

    FULL = "full"
    MASKED = "masked"  # their kind and length
    NONE = "none"  # not even the columns' names


@dataclass(frozen=True, slots=True)
class ConsoleSettings:
    """The settings of ``kainite console``."""

    listen: Address = own(
        "consoleListen",
        address(),
        Reload.RESTART,
        "Where `kainite console` listens; beyond loopback it needs a certificate and users, or a named proxy.",
        default=Address("127.0.0.1", 8430),
    )
    operators: tuple[str, ...] = own(
        "consoleOperators",
        names(),
        Reload.RESTART,
        "Users who may act; all others only look. `local` stands for everybody where nobody logs in.",
        default=(),
    )
    users_file: Path | None = own(
        "consoleUsersFile",
        path(),
        Reload.RESTART,
        "Who may look, a line of `kainite console --add-user NAME` each. Only its owner may read the file.",
        default=None,
        otherwise="nobody logs in",
    )
    oidc_issuer: str | None = own(
        "consoleOidcIssuer",
        http_url(),
        Reload.RESTART,
        "Issuer of the OpenID Connect provider at which users log in, as its discovery document names it.",
        default=None,
        otherwise="nobody logs in there",
    )
    oidc_client: str | None = own(
        "consoleOidcClientId",
        text("the client's id"),
        Reload.RESTART,
        "The console's client id at the provider.",
        default=None,
        otherwise="none",
    )
    oidc_secret_file: Path | None = own(
        "consoleOidcSecretFile",
        path(),
        Reload.RESTART,
        "File with the client's secret. Only its owner may read the file.",
        default=None,
        otherwise="a public client: PKCE alone",
    )
    oidc_redirect: str | None = own(
        "consoleOidcRedirect",
        http_url(),
        Reload.RESTART,
        "Address to which the provider sends users back, as it is registered there: the console's /oidc/callback.",
        default=None,
        otherwise="none",
    )
    oidc_claim: str = own(
        "consoleOidcClaim",
        text("the name of a claim", r"[A-Za-z0-9_:/.-]{1,200}"),
        Reload.RESTART,
        "Claim with the user's name, which `consoleOperators` compares; an `email` counts only if it is verified.",
        default="email",
    )
    oidc_scope: str = own(
        "consoleOidcScope",
        text("scopes, separated by spaces"),
        Reload.RESTART,
        "Scopes that are asked for.",
        default="openid email profile",
    )
    oidc_groups: tuple[str, ...] = own(
        "consoleOidcGroups",
        names(),
        Reload.RESTART,
        "Groups at the provider whose users may look; nobody else may, nor act.",
        default=(),
        otherwise="everybody whom the provider lets in",
    )
    oidc_groups_claim: str = own(
        "consoleOidcGroupsClaim",
        text("the name of a claim", r"[A-Za-z0-9_:/.-]{1,200}"),
        Reload.RESTART,
        "Claim with the user's groups, which `consoleOidcGroups` compares.",
        default="groups",
    )
    proxies: tuple[str, ...] = own(
        "consoleProxies",
        names(),
        Reload.RESTART,
        "Addresses or networks of the proxies before the console; it then answers no other client.",
        default=(),
    )
    user_header: str | None = own(
        "consoleUserHeader",
        text("the name of a header", r"[A-Za-z0-9-]{1,64}"),
        Reload.RESTART,
        "Header in which the proxy of `consoleProxies` names the user; it must remove what clients send in it.",
        default=None,
        otherwise="users log in at the console",
    )
    certificate_file: Path | None = own(
        "consoleCertificateFile",
        path(),
        Reload.RESTART,
        "The console's certificate (PEM).",
        default=None,
        otherwise="none: plain HTTP",
    )
    key_file: Path | None = own(
        "consoleKeyFile", path(), Reload.RESTART, "The certificate's key (PEM).", default=None, otherwise="none"
    )
    hosts: tuple[str, ...] = own(
        "consoleHosts",
        names(),
        Reload.RESTART,
        "Names by which browsers reach the console, beside loopback's and that of `consoleListen`.",
        default=(),
    )
    prefix: str = own(
        "consolePathPrefix",
        text("a path like /kainite", r"(/[A-Za-z0-9._~-]+)*"),
        Reload.RESTART,
        "Path before all of the console's, where a proxy has it below a path.",
        default="",
        otherwise="none",
    )
    values: RowDisplay | None = own(
        "consoleValues",
        choice(RowDisplay),
        Reload.RESTART,
        "What is shown of the values of rows.",
        default=None,
        otherwise="`full` on loopback, else `masked`",
    )

    @property
    def shown_values(self) -> RowDisplay:
        """Returns what is shown of the values of rows."""
        if self.values is not None:
            return self.values
        return RowDisplay.FULL if self.listen.is_loopback and not self.proxies else RowDisplay.MASKED
