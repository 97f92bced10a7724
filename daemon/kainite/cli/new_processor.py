"""``kainite new-processor``: the command."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path

import click
from rich.table import Table

from kainite.cli.terminal import say, say_json, stdout
from kainite.new_processor.catalogue import EXAMPLES, SAMPLES, Example, find, languages
from kainite.new_processor.starter import PROPERTIES, starter, write
from kainite.settings import ChildProtocol

_DIALECTS = sorted({example.dialect.value for example in EXAMPLES})


@click.command("new-processor")
@click.option(
    "--dialect", type=click.Choice(_DIALECTS), help="The dialect that it speaks.  [json-lines, where there is one]"
)
@click.option("--list", "listing", is_flag=True, help="Show the languages and dialects, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="With --list: one JSON document.")
@click.argument("language", required=False, type=click.Choice(languages()), metavar="LANGUAGE")
@click.argument("folder", required=False, type=click.Path(file_okay=False, path_type=Path), metavar="DIR")
def new_processor(dialect: str | None, listing: bool, as_json: bool, language: str | None, folder: Path | None) -> None:
    """Writes a starting point for a record processor into DIR: it works, and implements the protocol.

    DIR must be new, or empty. It gets the processor, a settings file to run it with, records to try it
    with, and a README that says what to do next.

    \b
    Examples:
      kainite new-processor --list                        the languages, and what each is written with
      kainite new-processor python orders                 with Amazon's library
      kainite new-processor c orders --dialect markers

    Exit code: 0 when the files are written, 1 when DIR is not empty or cannot be written, 2 for wrong usage.
    """
    if listing:
        _list(as_json=as_json)
        return
    if as_json:
        raise click.UsageError("--json goes with --list")
    if language is None or folder is None:
        raise click.UsageError("name a LANGUAGE and a DIR, or look at --list")
    example = find(language, ChildProtocol(dialect) if dialect else None)
    if example is None:
        raise click.UsageError(f"there is no {language} in {dialect}: see kainite new-processor --list")
    write(starter(example, folder.resolve().name), folder)
    say("\n".join(_next(example, folder)))


def _next(example: Example, folder: Path) -> list[str]:
    commands = [
        f"cd {shlex.quote(str(folder))}",
        *example.prepare,
        f"kainite conform -p {PROPERTIES} --records {SAMPLES}",
    ]
    return [f"{folder}: {example.source}, {example.language} in {example.dialect}. Now:", *(f"  {c}" for c in commands)]


def _list(*, as_json: bool) -> None:
    if as_json:
        say_json([asdict(example) for example in EXAMPLES], indent=True)
        return
    table = Table(header_style="bold")
    for name in ("Language", "Dialect", "Written with", "File", "Runs as"):
        table.add_column(name)
    for example in EXAMPLES:
        table.add_row(example.language, example.dialect, example.note, example.source, example.run)
    stdout().print(table)
