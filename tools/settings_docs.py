"""Writes ``docs/properties.md`` from the table of keys; a test compares the page with :func:`render`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kainite.settings.credentials import NAMES, CredentialsSource
from kainite.settings.key import Reload, SettingKey
from kainite.settings.keys.retired import RETIRED_KEYS
from kainite.settings.keys.table import KCL_KEYS, OWN_KEYS, SECTIONS, default_text
from kainite.settings.keys.without_effect import CLIENT_PREFIXES, CLIENT_SETTERS, INERT_KEYS, why_without_effect
from kainite.settings.loading.overrides import NOT_BARE, environment_name, option_name
from kainite.settings.several import OF_A_STREAM
from kainite.settings.targets import OF_A_TARGET

PAGE = Path(__file__).parent.parent / "docs" / "properties.md"

_HEAD = """\
# Properties

<!-- Written by `make docs` from daemon/kainite/settings; do not edit. -->

For those who write the settings file. One `.properties` file describes an application. `kainite run`, `kainite apply`,
`kainite log`, `kainite uow` and `kainite precedence` read the same one, and a file of the Java MultiLangDaemon is one
as it is.
`kainite run --check -p FILE` shows what is set and where, which keys are unknown, what may surprise and what is wrong,
and exits with 1 when something is wrong.

- The grammar is that of `java.util.Properties`. Keys are case-sensitive, except the three for credentials; a key
  without a value counts as absent. Of two spellings of a key the first one in the tables below wins.
- An unknown key is no error, so that a file of the Java daemon goes on working.
- Paths are relative to the file's own folder; `executableName` is found as a shell finds it, from the working folder.
- true may be written `true`, `yes`, `on` or `1`, false `false`, `no`, `off` or `0`.

## Environment and command line

Each key is an option of `kainite run` and may be set in the environment. An option wins over the environment, the
environment over the file; a file is not needed when all required keys are set elsewhere.

```sh
kainite run -p app.properties --worker-id host-1 --max-records 500
STREAM_NAME=orders kainite run -p app.properties
KAINITE_LOG_TABLE_NAME=orders-log kainite log show -p app.properties
```

- Options: case, `-`, `_` and `.` do not count, so `--stream-name`, `--streamName` and `--stream.name` are the same. An
  unknown option is an error.
- `KAINITE_` and the key's name, where case and separators do not count: every key, for every command.
- Without `KAINITE_`: KCL's keys, exactly as the tables spell them. Where such a variable changes what the file says, a
  warning says so; where `APPLICATION_NAME` does, Kainite does not start, because another application name means other
  checkpoints. Other programs use these names, so that only `KAINITE_TABLE_NAME` and so on are read:
  {not_bare}.

## Keys of one stream

With `streamNames` a key may be set for one of the streams: `stream.NAME.KEY = …` in the file, `--stream.NAME.KEY=…`
on the command line, `KAINITE_stream.NAME.KEY` in the environment, always spelled so, with the stream's name and one of
{of_a_stream}.
What is not set so holds for all streams. `creationEpoch` is the last part of the stream's identifier in KCL's lease
keys; without it the second of its creation is taken. A new value takes effect as the key's own does; a stream that is
added by SIGHUP has all that is written.

## Keys of one target

`target.NAME = …` names one of several targets in place of `target`; `target.NAME.KEY = …` sets one of
{of_a_target}
for it. [Several targets](targets.md#several-targets) says what they mean. Daemons and apply jobs read them at the
start.

## While the daemon runs

SIGHUP makes the daemon read the file again. The column "change" says when a changed value takes effect: now, with a
shard's next child, or when the apply job, `kainite extract` or the daemon is started again. The daemon logs each change
with its answer.

## Differences from the Java daemon

| Java | here |
|---|---|
| a text that is no number counts as 0, then as unset; negative numbers are taken | an error that says what is allowed |
| a text that is no boolean counts as false | an error |
| `cleanupLeasesUponShardCompletion=false` has no effect | it has an effect |
| a wrong text for a key without effect | a warning |
| only the name of `streamArn` is used | its region and account too, for Kinesis; a warning where `regionName` differs |
| `retrievalMode=DEFAULT` is fan-out unless a polling key is set | the same with `kainite[fanout]`; else polling |
| a polling key beside `retrievalMode=FANOUT` is ignored | a warning |
| no `AwsCredentialsProvider`: does not start | boto3's default chain |
| an unknown provider is skipped when another one works | an error; one without credentials on this host is skipped |
| `executableName` is split at spaces | as a shell splits it; a warning where that differs |
| `shutdownGraceMillis` is 0: children get no time | 10 seconds; a warning where a file says 0 |
| `metricsLevel` is DETAILED | SUMMARY, for what DETAILED costs |
| `AT_TIMESTAMP` is refused | refused, naming `initialPositionInStreamExtended` |
| a wrong enum, or an unknown name behind `kinesisClient.`: does not start | the same |

## The keys

In bold: must be set (`streamArn` or `streamNames` stands in for `streamName`).
"""

_CREDENTIALS = """\
## Credentials

`AwsCredentialsProvider` and its two siblings take providers of the SDKs for Java, with or without their package,
separated by commas. The first one that has credentials is used. Arguments follow behind `|`.

```properties
AwsCredentialsProvider = StsAssumeRoleCredentialsProvider|arn:aws:iam::123456789012:role/reader|kainite|externalId=x
AwsCredentialsProviderDynamoDB = ProfileCredentialsProvider|tables,DefaultCredentialsProvider
```

A role is assumed with the credentials of boto3's default chain, and again before it expires. Behind its ARN and the
session's name may follow `endpoint=URL^REGION`, `endpointRegion=REGION` and `externalId=ID`, for STS. A key in the file
is `StaticCredentialsProvider|KEY-ID|SECRET`; `--check` shows neither it nor an external id.

| provider | here |
|---|---|
"""


_CHANGE = {
    Reload.NOW: "now",
    Reload.NEXT_CHILD: "next child",
    Reload.NEXT_JOB: "next apply job",
    Reload.NEXT_EXTRACT: "next extract",
    Reload.RESTART: "restart",
}


def render() -> str:
    """Returns the whole page."""
    not_bare = ", ".join(f"`{name}`" for name in sorted(NOT_BARE))
    of_a_stream = ", ".join(f"`{key}`" for key in OF_A_STREAM)
    of_a_target = ", ".join(f"`{key}`" for key in OF_A_TARGET if key)
    parts = [
        _HEAD.replace("{not_bare}", not_bare)
        .replace("{of_a_stream}", of_a_stream)
        .replace("{of_a_target}", of_a_target),
        "### KCL's\n",
        *_sections(KCL_KEYS),
        "### Kainite's own\n",
        *_sections(OWN_KEYS),
        _CREDENTIALS + _providers(),
        _ignored(),
        _retired(),
    ]
    return "\n".join(parts)


def _sections(keys: Iterable[SettingKey]) -> list[str]:
    by_section: dict[str, list[SettingKey]] = {}
    for key in keys:
        by_section.setdefault(key.section, []).append(key)
    return [_section(SECTIONS[section].title, members) for section, members in by_section.items()]


def _section(title: str, keys: Iterable[SettingKey]) -> str:
    head = ["| key | value | default | meaning | environment, option | change |", "|---|---|---|---|---|---|"]
    return "\n".join([f"#### {title}\n", *head, *map(_row, keys)]) + "\n"


def _row(key: SettingKey) -> str:
    name = f"**`{key.name}`**" if key.required else f"`{key.name}`"
    aliases = "".join(f" or `{alias}`" for alias in key.aliases)
    default = default_text(key)
    shown = default if key.otherwise or not default else f"`{default}`"
    cells = (name + aliases, _escaped(key.kind.allowed), shown, key.meaning, _elsewhere(key), _CHANGE[key.reload])
    return f"| {' | '.join(cells)} |"


def _elsewhere(key: SettingKey) -> str:
    bare = environment_name(key.name)
    prefixed = key in OWN_KEYS or bare in NOT_BARE
    return f"`{'KAINITE_' if prefixed else ''}{bare}`, `{option_name(key.name)}`"


def _providers() -> str:
    by_source: dict[CredentialsSource, list[str]] = {}
    for name, source in NAMES.items():
        by_source.setdefault(source, []).append(f"`{name}`")
    return "".join(f"| {', '.join(names)} | {source} |\n" for source, names in by_source.items())


def _ignored() -> str:
    keys = sorted(INERT_KEYS, key=lambda key: key.name.lower())
    rows = [
        f"| `{key.name}` | {_escaped(key.kind.allowed)} | {f'`{key.default}`' if key.default else ''} | {key.reason} |"
        for key in keys
    ]
    nested = ", ".join(f"`{setter}`" for setter in CLIENT_SETTERS)
    prefixes = ", ".join(f"`{prefix}`" for prefix in CLIENT_PREFIXES)
    return (
        "## KCL's keys without an effect\n\n"
        "Accepted, so that old files start as they are. `kainite run --check` names those that are set.\n\n"
        "| key | value | KCL's default | because |\n|---|---|---|---|\n"
        + "\n".join(rows)
        + f"\n\nBehind {prefixes}: {nested}, and for DynamoDB `accountIdEndpointMode` and `endpointDiscoveryEnabled`,"
        f" are {why_without_effect('kinesisClient.httpClient')}. Any other name there is an error, as in Java.\n"
    )


def _retired() -> str:
    rows = [
        f"| `{key.name}` | {key.value} | {'does not start' if key.refused else 'a warning'} |" for key in RETIRED_KEYS
    ]
    return (
        "## Keys that are constants now\n\n"
        "Nobody could set them well; remove them from a file. The reasons for the values stand beside them, in\n"
        "`daemon/kainite/settings/sections`.\n\n"
        "| key | value | a file that sets it |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
