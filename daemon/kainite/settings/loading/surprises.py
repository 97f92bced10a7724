"""Finds settings that are allowed and may surprise, mostly because Java does something else.

A warning is logged when the daemon starts and shown by ``--check``; a note is only shown by ``--check``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from kainite.settings.credentials import CredentialsSource, Provider
from kainite.settings.keys.table import KCL_KEYS, POLLING_KEYS, Values
from kainite.settings.keys.without_effect import INERT_KEYS
from kainite.settings.loading.overrides import GivenText
from kainite.settings.sections.child import ChildProtocol
from kainite.settings.sections.stream import Retrieval

Texts = Mapping[str, GivenText]

_KCL_LEAST_IDLE = 0.2
_POLLING_KEYS = frozenset(key.name for key in POLLING_KEYS)
_FANOUT_KEYS = frozenset(key.name for key in KCL_KEYS if key.name.startswith("fanoutConfig."))


def warnings(texts: Texts, values: Values) -> tuple[str, ...]:
    """Returns a line for each setting that may surprise.

    Args:
        texts: the settings as they are written, by key.
        values: the values of those that could be understood, by section and field.
    """
    return tuple(line for rule in _WARNINGS for line in rule(texts, values))


def notes(texts: Texts, values: Values) -> tuple[str, ...]:
    """Returns a line for each setting that is worth knowing about and needs no mending."""
    return tuple(line for rule in _NOTES for line in rule(texts, values))


def _no_grace(texts: Texts, values: Values) -> Iterator[str]:
    if values.get(("child", "shutdown_grace")) == 0:
        yield "shutdownGraceMillis: 0 gives children no time to answer shutdownRequested and to checkpoint"


def _retrieval(texts: Texts, values: Values) -> Iterator[str]:
    mode = values.get(("stream", "retrieval"), Retrieval.DEFAULT)
    idle = ", ".join(sorted((_POLLING_KEYS if mode is Retrieval.FANOUT else _FANOUT_KEYS) & set(texts)))
    if idle and mode is Retrieval.FANOUT:
        yield f"retrievalMode: FANOUT does not poll, so these have no effect: {idle}"
    elif idle and (mode is Retrieval.POLLING or _POLLING_KEYS & set(texts)):
        yield f"retrievalMode: {mode} polls here, so these have no effect: {idle}; set it to FANOUT for fan-out"
    elif idle:
        yield f"retrievalMode: DEFAULT polls without kainite[fanout], and then these have no effect: {idle}"


def _arn(texts: Texts, values: Values) -> Iterator[str]:
    arn = values.get(("stream", "arn"))
    if arn is None:
        return
    region, name = arn.split(":")[3], arn.rpartition("/")[2]
    if values.get(("stream", "name"), name) != name:
        yield f"streamName: streamArn wins, and names the stream {name}"
    if values.get(("aws.kinesis", "region"), values.get(("aws", "region"), region)) != region:
        yield f"streamArn: Kinesis is asked in the ARN's region {region}, where Java only takes the ARN's name"


def _command(texts: Texts, values: Values) -> Iterator[str]:
    given, command = texts.get("executableName"), values.get(("child", "command"))
    if given is not None and command is not None and tuple(filter(None, re.split(" +", given.text))) != command:
        yield "executableName: quotes and backslashes are read as a shell reads them; Java splits at spaces only"


def _credentials(texts: Texts, values: Values) -> Iterator[str]:
    for (_, field), value in values.items():
        if field == "credentials":
            yield from _of_chain(value)


def _of_chain(chain: tuple[Provider, ...]) -> Iterator[str]:
    for provider in chain:
        if provider.source is CredentialsSource.JVM:
            yield f"{provider.name}: skipped, a process without a JVM has no system properties"
        elif provider.source is CredentialsSource.STATIC:
            yield f"{provider.name}: the secret key stands in the settings; a profile or a role keeps it out of them"


def _cleanup(texts: Texts, values: Values) -> Iterator[str]:
    if values.get(("leases", "cleanup_completed")) is False:
        yield "cleanupLeasesUponShardCompletion: false keeps the leases of finished shards; Java overlooks it"


def _inert(texts: Texts, values: Values) -> Iterator[str]:
    for key in INERT_KEYS:
        wrong = None if key.strict or key.name not in texts else problem_of(key.kind.parse, texts[key.name].text)
        if wrong:
            yield f"{key.name}: {wrong} (Java takes its default; it has no effect here)"


def _idle(texts: Texts, values: Values) -> Iterator[str]:
    if values.get(("stream", "idle_between_reads"), _KCL_LEAST_IDLE) < _KCL_LEAST_IDLE:
        yield "idleTimeBetweenReadsInMillis: below 200, which Java makes of it; Kinesis allows five reads a second"


def _default_mode(texts: Texts, values: Values) -> Iterator[str]:
    mode = values.get(("stream", "retrieval"), Retrieval.DEFAULT)
    if mode is Retrieval.FANOUT:
        yield (
            "retrievalMode: FANOUT speaks HTTP/2 with kainite[fanout], and without it HTTP/1.1, which AWS does not "
            "document for it. AWS bills each registered consumer until it is deleted"
        )
    if mode is Retrieval.DEFAULT and not _POLLING_KEYS & set(texts):
        yield (
            "retrievalMode: DEFAULT is fan-out with kainite[fanout], as in Java while no polling key is set; "
            "without it polling"
        )


def _no_credentials(texts: Texts, values: Values) -> Iterator[str]:
    if "AwsCredentialsProvider" not in texts:
        yield "AwsCredentialsProvider: not set, so boto3's default chain is used; Java would not start"


def _skipped_sync(texts: Texts, values: Values) -> Iterator[str]:
    if values.get(("stream", "skip_sync_if_leases")):
        yield "skipShardSyncAtWorkerInitializationIfLeasesExist: true also lets foreign aggregated records pass"


def _no_timeout(texts: Texts, values: Values) -> Iterator[str]:
    if values.get(("child", "protocol")) is ChildProtocol.MARKERS and ("child", "reply_timeout") not in values:
        yield "timeoutInSeconds: not set, so a worker that forgets to flush its output hangs its shard for ever"


def problem_of(parse: Callable[[str, Path], object], text: str) -> str | None:
    """Returns what is wrong with a text; None when nothing is."""
    try:
        parse(text, Path())
    except ValueError as error:
        return str(error)
    return None


_Rule = Callable[[Texts, Values], Iterator[str]]
_WARNINGS: tuple[_Rule, ...] = (_no_grace, _retrieval, _arn, _command, _credentials, _cleanup, _inert)
_NOTES: tuple[_Rule, ...] = (_idle, _default_mode, _no_credentials, _skipped_sync, _no_timeout)
