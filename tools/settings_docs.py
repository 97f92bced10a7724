"""Write ``docs/settings.md`` from the table of keys; a test holds the page against :func:`render`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kainite.settings.kcl_keys import KCL_KEYS
from kainite.settings.key import Key
from kainite.settings.own_keys import OWN_KEYS
from kainite.settings.table import default_text
from kainite.settings.without_effect import PREFIXES_WITHOUT_EFFECT, WITHOUT_EFFECT

PAGE = Path(__file__).parent.parent / "docs" / "settings.md"

_TITLES = {
    "aws": "AWS",
    "stream": "The stream",
    "leases": "Leases",
    "child": "Record processors",
    "log": "The serialization log",
    "uow": "Units of work",
    "apply": "The apply job",
}

_HEAD = """\
# Settings

<!-- Written by `make docs` from daemon/kainite/settings; do not edit. -->

One `.properties` file describes an application. `kainite run`, `kainite apply`, `kainite log`, `kainite uow` and
`kainite precedence` read the same one. `kainite run --check -p FILE` shows what a file sets, which keys nobody
knows and what is wrong, and exits with 1 when something is wrong.

- The grammar is that of `java.util.Properties`. Keys are case-sensitive; a key without a value is as good as absent.
- A wrong value stops Kainite with a message that names the key and what is allowed. (The Java daemon takes its
  default silently.)
- A key that nobody knows is no error, so that a file of the Java daemon goes on working.
- Paths are relative to the file's own folder; `executableName` is found as a shell would, from the working folder.

In bold: the file must set it (`streamArn` stands in for `streamName`).
"""


def render() -> str:
    """The whole page."""
    parts = [
        _HEAD,
        "## KCL's keys\n",
        *_sections(KCL_KEYS),
        "## Kainite's own keys\n",
        *_sections(OWN_KEYS),
        _ignored(),
    ]
    return "\n".join(parts)


def _sections(keys: Iterable[Key]) -> list[str]:
    by_section: dict[str, list[Key]] = {}
    for key in keys:
        by_section.setdefault(key.section, []).append(key)
    return [_section(_TITLES[section], members) for section, members in by_section.items()]


def _section(title: str, keys: Iterable[Key]) -> str:
    rows = [f"### {title}\n", "| key | value | default | meaning |", "|---|---|---|---|", *map(_row, keys)]
    return "\n".join(rows) + "\n"


def _row(key: Key) -> str:
    name = f"**`{key.name}`**" if key.required else f"`{key.name}`"
    aliases = "".join(f" or `{alias}`" for alias in key.aliases)
    default = default_text(key)
    shown = default if key.default or not default else f"`{default}`"
    return f"| {name}{aliases} | {key.kind.allowed} | {shown} | {key.meaning} |"


def _ignored() -> str:
    every = {**WITHOUT_EFFECT, **{f"{prefix}*": reason for prefix, reason in PREFIXES_WITHOUT_EFFECT.items()}}
    rows = [f"| `{key}` | {reason} |" for key, reason in sorted(every.items(), key=lambda item: item[0].lower())]
    head = "## KCL's keys without an effect\n\nAccepted, so that old files start as they are.\n"
    return "\n".join([head, "| key | because |", "|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
