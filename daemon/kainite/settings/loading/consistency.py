"""Finds problems that no single value shows: missing keys, contradictions, variables meant for another program."""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from kainite.base.address import Address
from kainite.base.markers import USED, Markers
from kainite.settings.keys.table import DEFAULTS, KEYS
from kainite.settings.keys.without_effect import INERT_KEYS, is_client_key
from kainite.settings.loader_command import EXEC
from kainite.settings.loading.overrides import GivenText
from kainite.settings.loading.surprises import problem_of
from kainite.settings.sections.child import ChildProtocol
from kainite.settings.sections.uow import UowEnd, UowOrder
from kainite.settings.settings import UnknownKey

MARKS: Final = ("eom", "eop", "eob", "bnc")


class Overridden(NamedTuple):
    """A key that is set twice: the text that counts, and the text that does not."""

    key: str
    winner: GivenText
    other: GivenText


def _is_bare(winner: GivenText, other: GivenText) -> bool:
    """Tells whether a variable that may be meant for another program changed the file's value."""
    from_file = other.origin == "file" and winner.text != other.text
    return from_file and winner.origin.startswith("environment ") and "KAINITE_" not in winner.origin


def overridden(changed: Sequence[Overridden]) -> list[str]:
    """Returns a warning for each value of the file that a variable without ``KAINITE_`` changed."""
    return [
        f"{key}: {winner.origin} wins over the file"
        for key, winner, other in changed
        if _is_bare(winner, other) and key != "applicationName"
    ]


def clashes(changed: Sequence[Overridden]) -> list[str]:
    """Returns a problem where a variable without ``KAINITE_`` changes the application's name.

    Another application name means another lease table: everything would be read again, or skipped.
    """
    return [
        f"{key}: the file says {other.text!r} and {winner.origin} {winner.text!r}: unset the variable, or say"
        f" KAINITE_APPLICATION_NAME where it is meant"
        for key, winner, other in changed
        if _is_bare(winner, other) and key == "applicationName"
    ]


def missing(texts: Mapping[str, GivenText], needs: Collection[str]) -> list[str]:
    """Returns the keys among ``needs`` that are not set; ``streamArn`` and ``streamNames`` stand in for ``streamName``.

    A file for ``kainite extract`` alone needs no ``executableName``.
    """
    instead = {"streamName": ("streamArn", "streamNames"), "executableName": ("extractorName",)}
    missing = [
        key for key in KEYS if key.name in needs and texts.keys().isdisjoint((key.name, *instead.get(key.name, ())))
    ]
    return [f"{key.name} is missing: {key.meaning[0].lower()}{key.meaning[1:].rstrip('.')}" for key in missing]


def refused(texts: Mapping[str, GivenText], unknown: Sequence[UnknownKey]) -> list[str]:
    """Returns the texts that keep Java from starting, though their keys have no effect here."""
    problems = [
        f"{key.name}: {wrong}"
        for key in INERT_KEYS
        if key.strict and key.name in texts and (wrong := problem_of(key.kind.parse, texts[key.name].text))
    ]
    for entry in unknown:
        if is_client_key(entry.key):
            hint = f", did you mean {entry.nearest}?" if entry.nearest else ""
            problems.append(f"{entry.key}: the SDK's client has no such setting{hint}")
    return problems


def contradictions(values: Mapping[tuple[str, str], Any]) -> list[str]:
    """Returns the values that contradict each other."""
    now = {**DEFAULTS, **values}
    return [
        *_of_the_units(now),
        *_of_the_output(now),
        *_of_the_service(now),
        *_of_the_console(now),
        *_unclear_markers(now),
    ]


def _of_the_units(now: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    """Yields the contradictions among the settings by which units are completed and ordered."""
    order, end = now["uow", "order"], now["uow", "end"]
    if order is UowOrder.TIME and end is not UowEnd.WATERMARK:
        yield "uowOrder=time needs uowEnd=watermark: a marker does not tell which earlier units are still to come"
    if order is UowOrder.DENSE and end is UowEnd.WATERMARK:
        yield "uowOrder=dense needs uowEnd=marker: a unit's number comes with its end"
    if end is UowEnd.WATERMARK and now["uow", "grace"] > now["uow", "timeout"] / 2:
        yield "uowGraceMillis must be at most half of uowTimeoutMillis: a unit must not time out within its grace"


def _of_the_output(now: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    """Yields the problems that keep the children's messages from being put on the output stream."""
    output = now["stream", "output"]
    if output is None:
        return
    if now["log", "enabled"]:
        yield "output and unitsOfWork=true exclude each other: a child's messages go to a stream, or into the log"
    if now["child", "protocol"] is not ChildProtocol.MARKERS:
        yield "output needs childProtocol=markers: a child of json-lines writes deltas and no messages"
    if output in (now.get(("stream", "name")), (now.get(("stream", "arn")) or "").rpartition("/")[2]):
        yield f"output is {output}, the stream that is read: its messages would come again and again"


def _unclear_markers(now: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    """Yields a problem where two markers of a conversation cannot be told apart; unused markers do not count."""
    own = {mark: now["child.markers", mark] for mark in MARKS}
    conversations = [now["child.markers", "batching"]]
    if (now["apply", "target"] or "").startswith(EXEC):
        conversations.append(now["apply", "loader_batching"])
    for batching in conversations:
        try:
            Markers(**own, used=USED[batching])
        except ValueError as error:
            yield f"{', '.join(f'marker{mark.capitalize()}' for mark in MARKS)}: {error}; none may stand in another"
            return


def _of_the_service(now: Mapping[tuple[str, str], Any]) -> list[str]:
    """Returns the problems that keep the log's service from listening, or from identifying its clients."""
    certificate, key = now["service", "certificate_file"], now["service", "key_file"]
    problems: list[str] = []
    if (certificate is None) != (key is None):
        problems.append("logCertificateFile and logKeyFile go together: set both, or none")
    for field, name in (("", ""), ("applications_", "Applications")):
        listen, advertise = now["service", f"{field}listen"], now["service", f"{field}advertise"]
        problems += _of_a_port(now, listen, advertise, name)
    return problems


def _of_the_console(now: Mapping[tuple[str, str], Any]) -> Iterator[str]:
    """Yields the problems that would open the console to whoever reaches it."""
    listen, users, proxies, header, certificate, key = (
        now["console", field]
        for field in ("listen", "users_file", "proxies", "user_header", "certificate_file", "key_file")
    )
    if (certificate is None) != (key is None):
        yield "consoleCertificateFile and consoleKeyFile go together: set both, or none"
    if header and not proxies:
        yield "consoleUserHeader needs consoleProxies: anybody else could send the header"
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            yield f"consoleProxies: {proxy!r} is no IP address or network"
    if not listen.is_loopback and certificate is None and not proxies:
        yield (
            f"consoleListen {listen} is reached from other hosts in plain text: set consoleCertificateFile and"
            " consoleKeyFile, or consoleProxies; or listen on 127.0.0.1"
        )
    oidc = now["console", "oidc_issuer"]
    yield from _of_oidc(now, users is not None or bool(header))
    if (not listen.is_loopback or proxies) and users is None and not header and oidc is None:
        yield (
            f"consoleListen {listen} is reached from other hosts, and nothing would tell who looks: set"
            " consoleUsersFile, consoleOidcIssuer, or consoleProxies and consoleUserHeader"
        )


def _of_oidc(now: Mapping[tuple[str, str], Any], other_login: bool) -> Iterator[str]:
    """Yields the problems of a login by OpenID Connect."""
    issuer, client, redirect = (now["console", field] for field in ("oidc_issuer", "oidc_client", "oidc_redirect"))
    given = [value is not None for value in (issuer, client, redirect)]
    if any(given) and not all(given):
        yield "consoleOidcIssuer, consoleOidcClientId and consoleOidcRedirect go together: set all, or none"
    if issuer is not None and other_login:
        yield "consoleOidcIssuer goes with neither consoleUsersFile nor consoleUserHeader: one says who looks"
    if now["console", "oidc_groups"] and issuer is None:
        yield "consoleOidcGroups needs consoleOidcIssuer: nothing else tells a user's groups"
    for key, url in (("consoleOidcIssuer", issuer), ("consoleOidcRedirect", redirect)):
        parts = urlsplit(url or "")
        if parts.scheme == "http" and not Address(parts.hostname or "", 0).is_loopback:
            yield f"{key} {url} is reached in plain text: only https, or http on loopback"


def _of_a_port(
    now: Mapping[tuple[str, str], Any], listen: Address | None, advertise: Address | None, name: str
) -> Iterator[str]:
    """Yields the problems that keep a port of the service from being opened: logListen's, or log``name``Listen's."""
    if listen is None or listen.is_loopback:
        return
    certificate, trust, secrets = (now["service", field] for field in ("certificate_file", "trust_file", "secret_file"))
    if certificate is None or (trust is None and secrets is None):
        yield (
            f"log{name}Listen {listen} is reached from other hosts, and nothing would tell who connects: set"
            " logCertificateFile and logKeyFile, and logTrustFile or logSecretFile; or listen on 127.0.0.1"
        )
    if advertise is None and listen.host in ("0.0.0.0", "::"):
        yield f"log{name}Listen {listen} is no address to connect to: set log{name}Advertise"
