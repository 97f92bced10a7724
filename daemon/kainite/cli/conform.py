"""``kainite conform``: the command."""

from __future__ import annotations

import logging
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import click
from rich.text import Text

from kainite.base.errors import ChildExitedError, SettingsError
from kainite.base.markers import Batching
from kainite.base.redaction import shown_command
from kainite.child.program_lookup import find_program
from kainite.cli.terminal import say_json, stdout
from kainite.conform.cases.case import Stage
from kainite.conform.cases.samples import generic, read_samples
from kainite.conform.exchange.child_run import AnswerLimits
from kainite.conform.report import rendering as reporting
from kainite.conform.report.findings import ConformReport
from kainite.conform.runner import LARGE, CaseProgress, ConformOptions, run
from kainite.settings import ApplySettings, ChildProtocol, ChildSettings, ExtractSettings, Settings, load
from kainite.settings.loader_command import loader_command
from kainite.settings.loader_markers import loader_markers

_FILE = click.Path(dir_okay=False, path_type=Path)
_SECONDS = click.FloatRange(min=0, min_open=True)


@click.command("conform", context_settings={"allow_interspersed_args": False})
@click.option(
    "--stage",
    type=click.Choice([stage.value for stage in Stage]),
    help="What the command is meant for.  [transform, or what FILE sets]",
)
@click.option("--dialect", type=click.Choice([protocol.value for protocol in ChildProtocol]),
              help="The dialect that the command speaks.  [json-lines, or what FILE says]")  # fmt: skip
@click.option("--batching", type=click.Choice([batching.value for batching in Batching]),
              help="In markers: who ends a batch.  [single, or what FILE says]")  # fmt: skip
@click.option("-p", "--properties-file", "properties", type=_FILE, metavar="FILE",
              help="Take the command, its dialect and its markers from a settings file.")  # fmt: skip
@click.option("--records", "samples", type=_FILE, metavar="FILE", help="Payloads of your own, one a line.")
@click.option("--case", "only", multiple=True, metavar="NAME", help="This case only; again for more.")
@click.option("--timeout", type=_SECONDS, default=10.0, show_default=True, metavar="S", help="For each answer.")
@click.option("--slow", type=_SECONDS, default=1.0, show_default=True, metavar="S",
              help="An answer that takes longer is SLOW.")  # fmt: skip
@click.option("--large", type=click.IntRange(min=10_000), default=LARGE, show_default=True, metavar="BYTES",
              help="Payload of the large call.")  # fmt: skip
@click.option("--strict", is_flag=True, help="NOTE and SLOW are failures too.")
@click.option("--junit", type=_FILE, metavar="FILE", help="Write a JUnit report for a CI server.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[--] COMMAND...")
def conform(
    stage: str | None,
    dialect: str | None,
    batching: str | None,
    properties: Path | None,
    samples: Path | None,
    only: tuple[str, ...],
    timeout: float,
    slow: float,
    large: int,
    strict: bool,
    junit: Path | None,
    as_json: bool,
    command: tuple[str, ...],
) -> int:
    """Tells whether a record processor implements the protocol: plays the daemon, one child a case.

    COMMAND is run some thirty times, with made-up records: let it write where they do no harm.
    A processor that takes certain payloads only needs some of them: --records FILE, one a line.

    \b
    PASS  as it should be
    NOTE  allowed, and worth knowing: it refused an odd payload, say
    SLOW  an answer took long
    FAIL  it breaks the protocol; the exchange that shows it is printed

    Exit code: 0 when nothing failed, 1 when something did (--strict: or was slow, or noted), 2 when it cannot be tried.

    \b
    Examples:
      kainite conform -- python processor.py
      kainite conform --records samples.jsonl -- node processor.js --verbose
      kainite conform --dialect markers --batching worker --timeout 3 -- ./transform
      kainite conform --stage load -- python loader.py
      kainite conform -p app.properties --junit conform.xml
      kainite conform --case shard-ended --case large -- python processor.py
    """
    if junit and not junit.parent.is_dir():
        raise click.UsageError(f"--junit: there is no folder {junit.parent}")
    try:
        settings = load(properties, needs=()) if properties else None
        meant, child = _child(settings, command, stage)
        options = ConformOptions(
            child=_spoken(child, dialect, batching),
            stage=meant,
            extract=settings.extract if settings else ExtractSettings(),
            for_next_stage=settings is not None and settings.stream.output is not None,
            samples=read_samples(samples) if samples else generic(),
            limits=AnswerLimits(timeout, slow),
            large=large,
            only=only,
        )
        find_program(options.child)
        with _terminated_as_interrupted(), _children_unlogged():
            report = run(options) if as_json else _shown(options)
    except (SettingsError, ChildExitedError) as error:  # exit 2, not 1: nothing is known about the processor
        raise click.UsageError(str(error).removeprefix("executableName: ")) from error
    if junit:
        reporting.write_junit(report, junit, strict=strict)
    if as_json:
        say_json(reporting.as_json(report, strict=strict), indent=True)
    return 0 if report.ok(strict=strict) else 1


@contextmanager
def _children_unlogged() -> Iterator[None]:
    """Keeps the log of the children out of the terminal: the report has what a child says and does."""
    children = logging.getLogger("kainite.child")
    level = children.level
    children.setLevel(logging.ERROR)
    try:
        yield
    finally:
        children.setLevel(level)


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Handles SIGTERM and SIGHUP as Ctrl-C: a CI server that gives up, or a closed terminal, ends the child too."""
    numbers = [number for number in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        # Not an exception of its own: asyncio turns SIGINT into a cancellation, which no half-started child escapes.
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _child(settings: Settings | None, command: tuple[str, ...], stage: str | None) -> tuple[Stage, ChildSettings]:
    """Returns the stage, and how its program is run by the settings file, if there is one, and the command line."""
    if settings is None and not command:
        raise click.UsageError("say which COMMAND to try: kainite conform -- COMMAND...")
    set_for = _programs(settings) if settings else {}
    meant = Stage(stage) if stage else next((each for each in set_for if not command), Stage.TRANSFORM)
    child = settings.child if settings else ChildSettings(())
    found = command or set_for.get(meant, ())
    if not found:
        raise click.UsageError(f"FILE names no program for the stage {meant}; say which COMMAND to try")
    if meant is Stage.TRANSFORM:
        return meant, replace(child, command=found)
    markers = child.markers
    if meant is Stage.LOAD:
        markers = loader_markers(settings.apply if settings else ApplySettings(), markers)
    return meant, replace(child, command=found, protocol=ChildProtocol.MARKERS, markers=markers)


def _programs(settings: Settings) -> dict[Stage, tuple[str, ...]]:
    """Returns the programs that a settings file names, by stage; the first one is meant where no stage is named."""
    programs = {
        Stage.TRANSFORM: settings.child.command,
        Stage.LOAD: loader_command(settings.apply.target or "") or (),
        Stage.EXTRACT: settings.extract.command,
    }
    return {stage: command for stage, command in programs.items() if command}


def _spoken(child: ChildSettings, dialect: str | None, batching: str | None) -> ChildSettings:
    """Returns the child with the dialect and the batching of the command line, which win."""
    markers = replace(child.markers, batching=Batching(batching)) if batching else child.markers
    return replace(child, protocol=ChildProtocol(dialect) if dialect else child.protocol, markers=markers)


def _shown(options: ConformOptions) -> ConformReport:
    """Runs the cases and prints a row as each ends; in a terminal, the case under way stands below the rows."""
    console = stdout()
    title = f"{shown_command(options.child.command)}  ({options.child.protocol})"
    console.print(Text(title, style="bold"), soft_wrap=True)
    with console.status("") as status:

        def show(progress: CaseProgress) -> None:
            if progress.result is None:
                status.update(f"{progress.number}/{progress.total} {progress.case.title}")
            else:
                console.print(reporting.row(progress.result))
                reporting.print_exchange(console, progress.result)

        report = run(options, show)
    console.print(Text(reporting.summary(report)), soft_wrap=True)
    return report
