"""Finds what crosses a network in plain text, or to somebody whose name nobody checks, and ports open to all. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from kainite.base.address import Address
from kainite.settings.credentials import endpoint_of
from kainite.settings.exposure.finding import Exposure
from kainite.settings.settings import Settings

_POSTGRESQL = "postgresql://"
_MARIADB = "mariadb://"
_VERIFYING = frozenset({"verify-ca", "verify-full"})


def on_the_network(settings: Settings, environment: Mapping[str, str]) -> Iterator[Exposure]:
    """Yields what others on the network may read, change or ask for.

    The log's ports are none of it: the settings refuse to open them beyond loopback without a certificate and a way to
    tell who connects.
    """
    yield from _plain_endpoints(settings)
    yield from _unverified_target(settings, environment)
    yield from _open_ports(settings)


def database_parameters(target: str) -> Mapping[str, str] | None:
    """Returns the parameters behind the ``?`` of a PostgreSQL target; None for a target of another kind."""
    if not target.startswith(_POSTGRESQL):
        return None
    return dict(parse_qsl(target.partition("?")[2], keep_blank_values=True))


def _plain_endpoints(settings: Settings) -> Iterator[Exposure]:
    aws = settings.aws
    endpoints = {
        "kinesisEndpoint": aws.kinesis_endpoint,
        "dynamoDBEndpoint": aws.dynamodb_endpoint,
        "cloudWatchEndpoint": aws.cloudwatch_endpoint,
        "s3Endpoint": aws.s3_endpoint,
    }
    found = [*endpoints.items()]
    for own in (aws.kinesis, aws.dynamodb, aws.cloudwatch):
        found += [("AwsCredentialsProvider's endpoint", endpoint_of(provider)[0]) for provider in own.credentials]
    for key, url in dict.fromkeys(found):
        parts = urlsplit(url or "")
        if parts.scheme == "http" and not Address(parts.hostname or "", 0).is_loopback:
            where = f"{key} {parts.scheme}://{parts.hostname}"
            yield Exposure("records and answers cross the network in plain text", where, "use an https address")


def _unverified_target(settings: Settings, environment: Mapping[str, str]) -> Iterator[Exposure]:
    target = settings.apply.target or ""
    if target.startswith(_MARIADB):
        yield from _unverified_mariadb(target)
    given = database_parameters(target)
    if given is None:
        return
    mode = given.get("sslmode") or environment.get("PGSSLMODE") or "prefer"
    hosts = [host for host in _hosts(target, given, environment) if not _is_here(host)]
    if hosts and mode not in _VERIFYING:
        yield Exposure(
            f"the database's certificate is not verified (sslmode={mode}), so that another host can stand in its place",
            f"target at {', '.join(hosts)}",
            "add ?sslmode=verify-full, and sslrootcert= where its authority is your own",
        )


def _unverified_mariadb(target: str) -> Iterator[Exposure]:
    parts = urlsplit(target)
    given = dict(parse_qsl(parts.query))
    host = parts.hostname or ""
    if not (_is_here(host) or given.get("ssl_ca") or given.get("unix_socket")):
        yield Exposure(
            "the database's certificate is not verified, so that another host can stand in its place",
            f"target at {host}",
            "add ?ssl_ca= with the authority of its certificate",
        )


def _hosts(target: str, given: Mapping[str, str], environment: Mapping[str, str]) -> list[str]:
    """Returns the hosts that libpq connects to, without ports; an empty name is a socket of this host."""
    if named := given.get("hostaddr") or given.get("host"):
        return named.split(",")
    place = target.removeprefix(_POSTGRESQL).partition("?")[0].partition("/")[0].rpartition("@")[2]
    hosts = [urlsplit(f"//{one}").hostname or "" for one in place.split(",")]
    return hosts if any(hosts) else (environment.get("PGHOSTADDR") or environment.get("PGHOST") or "").split(",")


def _is_here(host: str) -> bool:
    name = unquote(host)
    return not name or name.startswith(("/", "@")) or Address(name, 0).is_loopback


def _open_ports(settings: Settings) -> Iterator[Exposure]:
    host = settings.metrics.host
    ports = {
        "metricsPort": settings.metrics.port,
        "logMetricsPort": settings.service.metrics_port,
        "applyMetricsPort": settings.apply.metrics_port,
        "extractMetricsPort": settings.extract.metrics_port,
    }
    if Address(host, 0).is_loopback:
        return
    for key, port in ports.items():
        if port is not None:
            yield Exposure(
                "metrics and health are told to everybody who reaches this host, in plain text",
                f"{key} {port} on metricsHost {host}",
                "leave metricsHost on 127.0.0.1, or let a firewall or a network policy admit the scraper alone",
            )
