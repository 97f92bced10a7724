"""Finds files with a secret that others than their owner may read: all kinds of such files are judged alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kainite.base.errors import SettingsError
from kainite.base.redaction import redacted, secrets_in_words
from kainite.settings.credentials import CredentialsSource, Provider
from kainite.settings.exposure.finding import Exposure, is_open_to_others, mode_of
from kainite.settings.exposure.network import database_parameters
from kainite.settings.keys.table import KEY_BY_SPELLING
from kainite.settings.loader_command import loader_command
from kainite.settings.loading.properties_file import read_properties
from kainite.settings.sections.aws import AwsSettings
from kainite.settings.settings import Settings

_OF_PROFILES = frozenset({CredentialsSource.DEFAULT, CredentialsSource.PROFILE, CredentialsSource.ASSUME_ROLE})


def readable_secrets(settings: Settings, environment: Mapping[str, str]) -> Iterator[Exposure]:
    """Yields the files with a secret that others may read or change."""
    files = {path.absolute(): kind for kind, path in _files(settings, environment) if path.is_file()}
    for path, kind in files.items():
        if is_open_to_others(mode_of(path)):
            yield Exposure(f"{kind} may be read or changed by other users of this host", str(path), f"chmod 600 {path}")


def in_the_process_list(settings: Settings) -> Iterator[Exposure]:
    """Yields the commands that show a secret to all users of the host."""
    commands = {
        "executableName": settings.child.command,
        "extractorName": settings.extract.command,
        "target": loader_command(settings.apply.target or "") or (),
    }
    for key, command in commands.items():
        if secrets_in_words(command):
            yield Exposure(
                "the command line holds a secret, and every user of this host sees it in the process list",
                key,
                "give it to the program in a file, or in its environment",
            )


def _files(settings: Settings, environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yields the files that hold a secret, each with its kind."""
    home = Path(environment.get("HOME") or "/nonexistent")
    service, duties = settings.service, settings.fleet.duties_file
    if settings.path is not None and _holds_a_secret(settings.path):
        yield "this settings file holds a secret, and", settings.path
    if duties is not None and _shows_a_secret(duties):
        yield "the file of duties holds a secret, and", duties
    if service.key_file is not None:
        yield "the key in logKeyFile", service.key_file
    if service.secret_file is not None:
        yield "the secrets in logSecretFile", service.secret_file
    if settings.console.key_file is not None:
        yield "the key in consoleKeyFile", settings.console.key_file
    if settings.console.users_file is not None:
        yield "the users in consoleUsersFile", settings.console.users_file
    if settings.console.oidc_secret_file is not None:
        yield "the secret in consoleOidcSecretFile", settings.console.oidc_secret_file
    yield from _of_the_database(settings, environment, home)
    if _uses_profiles(settings.aws):
        given = environment.get("AWS_SHARED_CREDENTIALS_FILE")
        yield "the file of AWS credentials", Path(given).expanduser() if given else home / ".aws" / "credentials"
        given = environment.get("AWS_CONFIG_FILE")
        path = Path(given).expanduser() if given else home / ".aws" / "config"
        if _shows_a_secret(path):
            yield "the file of AWS profiles holds a secret, and", path


def _of_the_database(settings: Settings, environment: Mapping[str, str], home: Path) -> Iterator[tuple[str, Path]]:
    """Yields the files from which libpq takes a password or a key for the target."""
    given = database_parameters(settings.apply.target or "")
    if given is None:
        return
    passwords = given.get("passfile") or environment.get("PGPASSFILE")
    yield "the file of database passwords", Path(passwords) if passwords else home / ".pgpass"
    key = given.get("sslkey") or environment.get("PGSSLKEY")
    yield "the key for the database", Path(key) if key else home / ".postgresql" / "postgresql.key"


def _uses_profiles(aws: AwsSettings) -> bool:
    chains: tuple[tuple[Provider, ...], ...] = tuple(
        own.credentials for own in (aws.kinesis, aws.dynamodb, aws.cloudwatch) if own.credentials
    )
    # A service without a chain of its own has Kinesis', and that one without any has boto3's.
    return not aws.kinesis.credentials or any(one.source in _OF_PROFILES for chain in chains for one in chain)


def _holds_a_secret(path: Path) -> bool:
    """Returns whether a settings file holds a secret: by a key's kind, or by the name or shape of an unknown key."""
    try:
        texts, _ = read_properties(path)
    except SettingsError:  # it was read a moment ago, and is being replaced
        return False
    return any(
        bool(tuple(key.kind.secrets(given.text)))
        if (key := KEY_BY_SPELLING.get(spelling))
        else _is_a_secret(spelling, given.text)
        for spelling, given in texts.items()
    )


def _is_a_secret(name: str, value: str) -> bool:
    line = f"{name}={value}"
    return redacted(line) != line


def _shows_a_secret(path: Path) -> bool:
    try:
        text = path.read_text(encoding="latin-1")
    except OSError:
        return False
    return redacted(text) != text
