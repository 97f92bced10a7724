"""The files of a starting point: an example, settings that run it, records to try it with, and a README."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kainite.base.errors import SettingsError
from kainite.new_processor.catalogue import SAMPLES, Example, folder

PROPERTIES: Final = "processor.properties"
README: Final = "README.md"

_SETTINGS: Final = """\
# Run it in this folder:  kainite run -p {properties}
# All keys:               docs/properties.md; what is set and what is wrong:  kainite run -p {properties} --check

# The application names the lease table, so each one has a name of its own.
applicationName = {application}
streamName = changes
regionName = us-east-1
initialPositionInStream = TRIM_HORIZON

executableName = {run}
childProtocol = {dialect}

# Without AWS: `kainite demo --servers servers.env` in another terminal, then `. ./servers.env` and
# `aws kinesis create-stream --stream-name changes --shard-count 1` in this one. Endpoints of another double:
# kinesisEndpoint = http://localhost:4566
# dynamoDBEndpoint = http://localhost:4566

# What the processor emits is skipped until there is a target; its tables must exist.
# unitsOfWork = true
# uowOrder = arrival
# target = postgresql://user@localhost:5432/shop
"""

_README: Final = """\
# {name}

A record processor for Kainite: {language}, {dialect}, with {note}. It takes records like those in `{samples}`, one JSON
object each, and turns each into a delta of one row; a record that it cannot read is reported, and does no harm.

Try it in this folder:

```
{prepare}kainite conform -p {properties} --records {samples}
kainite run -p {properties} --check
kainite run -p {properties}
```

Then:

1. Put records of your own into `{samples}`, one a line, and rewrite `delta` in `{source}` until it takes them.
   `kainite conform` says after each change whether it still implements the protocol.
2. Set the stream, the application's name and the target in `{properties}`.
3. Read `docs/record-processors.md` for the traps, and `docs/protocol.md` for what a delta may hold.
"""


def starter(example: Example, name: str) -> dict[str, bytes]:
    """Returns the files by their names; the application is named after ``name``."""
    here = folder()
    origin = here / example.language
    copied = {file: (origin / file).read_bytes() for file in (example.source, *example.beside)}
    return copied | {
        SAMPLES: (here / SAMPLES).read_bytes(),
        PROPERTIES: _settings(example, name).encode(),
        README: _readme(example, name).encode(),
    }


def write(files: Mapping[str, bytes], into: Path) -> None:
    """Writes the files into a folder that is new, or empty.

    Raises:
        SettingsError: the folder is neither new nor empty, or cannot be written; nothing was overwritten.
    """
    try:
        into.mkdir(parents=True, exist_ok=True)
        if there := sorted(path.name for path in into.iterdir()):
            held = ", ".join(there[:3]) + (", …" if len(there) > 3 else "")
            raise SettingsError(f"{into} is not empty ({held}): name a folder that is new, or empty")
        for name, content in files.items():
            with (into / name).open("xb") as file:
                file.write(content)
    except OSError as error:
        raise SettingsError(f"{into} cannot be written: {error.strerror}; name another folder") from error


def _settings(example: Example, name: str) -> str:
    application = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip("-.") or "processor"
    return _SETTINGS.format(
        properties=PROPERTIES, application=f"kainite-{application}"[:100], run=example.run, dialect=example.dialect
    )


def _readme(example: Example, name: str) -> str:
    return _README.format(
        name=name,
        language=example.language,
        dialect=example.dialect,
        note=example.note,
        samples=SAMPLES,
        prepare="".join(f"{command}\n" for command in example.prepare),
        properties=PROPERTIES,
        source=example.source,
    )
