"""Reads settings from a file, the environment and the command line, and turns them into keys, values and sections.

Every problem is collected. A problem must be mended before anything can start. An unknown key is no problem, because
Java ignores it and old files shall go on working; ``kainite run --check`` names it. An unknown option is a problem.
"""

from __future__ import annotations

import difflib
import os
import secrets
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from kainite.base.errors import SettingsError
from kainite.base.redaction import learn, redacted
from kainite.settings.keys.retired import RETIRED, retired
from kainite.settings.keys.table import DEFAULTS, KEY_BY_SPELLING, KEYS, POLLING_KEYS, SECTIONS, Values
from kainite.settings.keys.without_effect import is_client_key, why_without_effect
from kainite.settings.loading import consistency, surprises
from kainite.settings.loading.consistency import Overridden
from kainite.settings.loading.overrides import SPELLINGS, GivenText, from_environment, from_options
from kainite.settings.loading.properties_file import read_properties
from kainite.settings.sections.apply import TargetCommit
from kainite.settings.sections.fleet import ping_of
from kainite.settings.sections.log import heartbeat_of, poll_of
from kainite.settings.sections.stream import InitialPosition, Retrieval
from kainite.settings.settings import Settings, UnknownKey
from kainite.settings.several import OF_A_STREAM, is_arn, name_of, parsed_of_streams, stream_key
from kainite.settings.several import problems as problems_of_streams
from kainite.settings.targets import OF_A_TARGET, assignment_of, parsed_of_targets, target_key
from kainite.settings.targets import problems as problems_of_targets

Texts = dict[str, GivenText]

T = TypeVar("T")

_NOTHING: tuple[Texts, tuple[str, ...]] = ({}, ())


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of reading settings: the settings, or the problems.

    Attributes:
        path: the file; None if there is no file.
        settings: None when there are problems.
        values: the values that are set and could be understood, by section and field.
        origins: the place that each key's value comes from, by key.
        wrong: the keys whose text could not be understood.
        problems: one line each, with the key.
        warnings, notes: as in :mod:`kainite.settings.loading.surprises`.
        ignored, unknown: as in :class:`~kainite.settings.settings.Settings`.
    """

    path: Path | None
    settings: Settings | None
    values: Values
    origins: Mapping[str, str] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    unknown: tuple[UnknownKey, ...] = ()

    @property
    def place(self) -> str:
        """Returns where the settings come from, for messages."""
        return str(self.path) if self.path else "settings from the environment and the command line"

    def settings_or_raise(self) -> Settings:
        """Returns the settings.

        Raises:
            SettingsError: there are problems; the message has all of them.
        """
        if self.settings is None:
            raise SettingsError(f"{self.place}: {'; '.join(self.problems)}")
        return self.settings


NEEDED: Final = frozenset(key.name for key in KEYS if key.required)
"""The keys that the daemon cannot do without."""


def examine(
    path: Path | None,
    *,
    options: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    needs: Collection[str] = NEEDED,
) -> Examination:
    """Reads a file and what overrides it; problems with the contents are returned.

    Args:
        path: the file; None where all settings come from elsewhere.
        options: the command line's settings, as :func:`~kainite.settings.loading.overrides.from_options` takes them.
        environment: ``os.environ`` unless given.
        needs: the keys that must be set.

    Raises:
        SettingsError: the file cannot be read, or an option is unknown.
    """
    in_file, twice = read_properties(path) if path else _NOTHING
    in_environment, strangers = from_environment(os.environ if environment is None else environment)
    on_line, _ = from_options(options)
    layers = (on_line, in_environment, in_file)
    _learn_secrets(layers)
    texts, overridden = _by_key(layers)
    folder = Path.cwd() if path is None else path.absolute().parent
    values, misread = _parse(texts, folder)
    plain = {key: given.text for key, given in texts.items()}
    of_streams, misread_of_streams = parsed_of_streams(plain, folder)
    of_targets, misread_of_targets = parsed_of_targets(plain, folder)
    ignored = tuple(key for key in texts if why_without_effect(key))
    unknown = tuple(UnknownKey(key, nearest(key)) for key in (*texts, *strangers) if not _is_known(key))
    problems = _harmless(
        *misread.values(),
        *misread_of_streams,
        *problems_of_streams(values.get(("stream", "names"), ()), of_streams, values),
        *misread_of_targets,
        *(() if misread_of_targets else problems_of_targets(of_targets, values)),
        *consistency.missing(texts, needs),
        *consistency.contradictions(values),
        *consistency.refused(texts, unknown),
        *retired(texts, refused=True),
        *consistency.clashes(overridden),
    )
    found = Examination(
        path,
        None,
        values,
        origins={key: given.origin for key, given in texts.items()},
        wrong=tuple(misread),
        problems=problems,
        warnings=_harmless(
            *surprises.warnings(texts, values),
            *retired(texts, refused=False),
            *twice,
            *consistency.overridden(overridden),
        ),
        notes=_harmless(*surprises.notes(texts, values)),
        ignored=ignored,
        unknown=tuple(entry for entry in unknown if not is_client_key(entry.key)),
    )
    if problems:
        return found
    settings = _settings(found, tuple(options))
    # With one apply job for all targets the log's units have no parts, as where there is one target.
    noted = {} if settings.apply.commit is not TargetCommit.EACH else of_targets
    log = replace(settings.log, targets=assignment_of(noted))
    return replace(found, settings=replace(settings, log=log, of_streams=of_streams, of_targets=of_targets))


def load(path: str | Path | None, options: Sequence[str] = (), *, needs: Collection[str] = NEEDED) -> Settings:
    """Reads and validates a settings file, with what the environment and ``options`` override.

    Args:
        path: the file; None where all settings come from elsewhere.
        options: the command line's settings.
        needs: the keys that must be set; what else the command does not use has a default.

    Raises:
        SettingsError: the file cannot be read, or a setting is wrong; the message has all problems.
    """
    return examine(None if path is None else Path(path), options=options, needs=needs).settings_or_raise()


def nearest(key: str) -> str | None:
    """Returns the known key that ``key`` may have been meant to be."""
    by_lower = {known.lower(): known for known in SPELLINGS}
    found = difflib.get_close_matches(key.lower(), by_lower, n=1, cutoff=0.75)
    return by_lower[found[0]] if found else None


def _learn_secrets(layers: Sequence[Mapping[str, GivenText]]) -> None:
    """Makes the secrets in all texts known, before any of them can stand in a message; overridden ones too."""
    for layer in layers:
        for spelling, given in layer.items():
            of_a_stream = stream_key(spelling)
            of_a_target = target_key(spelling)
            key = OF_A_STREAM[of_a_stream[1]] if of_a_stream else KEY_BY_SPELLING.get(spelling)
            if key is not None:
                learn(key.kind.secrets(given.text))
            elif of_a_target is not None:
                learn(OF_A_TARGET[of_a_target[1]].kind.secrets(given.text))


def _harmless(*lines: str) -> tuple[str, ...]:
    """Hides text in the shape of a secret: a target's address may stand under a key of another kind."""
    return tuple(map(redacted, lines))


def _by_key(layers: Sequence[Mapping[str, GivenText]]) -> tuple[Texts, list[Overridden]]:
    """Returns the text that counts for each key, and the texts that it won over."""
    texts: Texts = {}
    overridden: list[Overridden] = []
    for layer in layers:
        here: Texts = {}
        for spelling in sorted(layer, key=_is_alias):
            key = KEY_BY_SPELLING.get(spelling)
            here.setdefault(key.name if key else spelling, layer[spelling])
        overridden += [Overridden(key, texts[key], given) for key, given in here.items() if key in texts]
        texts = here | texts
    return texts, overridden


def _is_alias(spelling: str) -> bool:
    key = KEY_BY_SPELLING.get(spelling)
    return key is not None and key.name != spelling


def _is_known(key: str) -> bool:
    own = stream_key(key) is not None or target_key(key) is not None
    return own or key in KEY_BY_SPELLING or key in RETIRED or why_without_effect(key) is not None


def _parse(texts: Texts, folder: Path) -> tuple[Values, dict[str, str]]:
    """Returns the values, and by key what is wrong with each text that could not be understood."""
    values: Values = {}
    misread: dict[str, str] = {}
    for key in KEYS:
        given = texts.get(key.name)
        if given is None:
            continue
        try:
            values[key.section, key.field] = key.kind.parse(given.text, folder)
        except ValueError as error:
            where = "" if given.origin == "file" else f" ({given.origin})"
            misread[key.name] = f"{given.spelling}{where}: {error}"
    return values, misread


def _settings(found: Examination, options: tuple[str, ...]) -> Settings:
    return _section(
        Settings,
        "",
        _worked_out(found.values),
        path=found.path,
        ignored=found.ignored,
        unknown=found.unknown,
        warnings=found.warnings,
        options=options,
    )


def _section(kind: type[T], name: str, values: Values, **more: Any) -> T:
    """Returns a section with the values of its fields and of the sections in it; the empty name is all settings."""
    for path, section in SECTIONS.items():
        owner, _, field_name = path.rpartition(".")
        if owner == name:
            more[field_name] = _section(section.kind, path, values)
    return kind(**more, **{field: value for (owner, field), value in values.items() if owner == name})


def _worked_out(values: Values) -> Values:
    """Adds the values that follow from others."""
    application = values.get(("leases", "application"), "")
    defaults: Values = {
        ("leases", "application"): application,
        ("stream", "name"): f"several of {application}" if ("stream", "names") in values else "",
        ("leases", "table"): application,
        ("leases", "worker_id"): f"{socket.gethostname()}:{secrets.token_hex(8)}",
        ("log", "table"): f"{application}-log",
        ("fleet", "table"): f"{application}-Fleet",
        ("child", "command"): (),
    }
    result = defaults | values
    now = DEFAULTS | result
    result["log", "owner"] = result["leases", "worker_id"]
    result["log", "heartbeat"] = heartbeat_of(now["log", "lease"])
    result["log", "poll"] = poll_of(now["log", "lease"])
    result["fleet", "ping"] = ping_of(now["fleet", "timeout"])
    result["child", "restart_backoff_max"] = max(now["child", "restart_backoff"], now["child", "restart_backoff_max"])
    if ("stream", "initial_timestamp") in values:
        result["stream", "initial_position"] = InitialPosition.AT_TIMESTAMP
    if now["stream", "retrieval"] is Retrieval.DEFAULT and any(
        (key.section, key.field) in values for key in POLLING_KEYS
    ):
        result["stream", "retrieval"] = Retrieval.POLLING
    return result | _from_arn(values)


def _from_arn(values: Values) -> Values:
    """Returns the stream's name and region from its ARN, and the ARN's region for AWS where none is given.

    Of several streams an ARN tells the region alone.
    """
    arn = values.get(("stream", "arn"))
    located = arn or next(filter(is_arn, values.get(("stream", "names"), ())), None)
    if located is None:
        return {}
    region = located.split(":")[3]
    return {
        **({("stream", "name"): name_of(arn)} if arn else {}),
        ("aws", "region"): values.get(("aws", "region"), region),
        ("aws.kinesis", "region"): values.get(("aws.kinesis", "region"), region),
    }
