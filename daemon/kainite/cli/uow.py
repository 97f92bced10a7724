"""``kainite uow``: shows one unit of work with what it waits for, and resolves failed ones, alone or in bulk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final

import click

from kainite.base.errors import LogRequestError
from kainite.base.redaction import RowValues
from kainite.cli.lazy_group import ListedGroup
from kainite.cli.log_control import carry_out
from kainite.cli.opened_log import opened_log
from kainite.cli.options import properties_option, why_option
from kainite.cli.terminal import say, say_json, say_rows
from kainite.cli.unit_filter import unit_filter
from kainite.cli.uow_locks import locks
from kainite.cli.uow_target import MOST_LOOKED_FOR, RowsBeside, look_beside, part_lines
from kainite.log.format.entry import OperationResult, UnitStatus
from kainite.log.state.target_parts import TargetPart
from kainite.log.state.unit_filter import UnitFilter
from kainite.log.views.target_marks import read_marks
from kainite.log.views.unit_detail import UnitDetail, read_detail
from kainite.log.views.unit_table import LogRow
from kainite.operations.carrying_out import Operations
from kainite.operations.inbox import this_person
from kainite.operations.operation import CorrectUnit, DiscardUnits, Preview, RetryUnits, UnitOperation
from kainite.operations.owners import array_of_deltas
from kainite.settings import Settings, load
from kainite.settings.targets import of_target, require_parts

_NAMED: Final = 10
_SHOWN_DELTAS: Final = 100

_names = click.argument("names", nargs=-1, metavar="[NAME|ID]...")
_all = click.option("--all", "everything", is_flag=True, help="All failed units.")
_timeout = click.option(
    "--timeout", default=10.0, show_default=True, metavar="SECONDS", help="How long to wait for the daemon's answers."
)
_alone = click.option("--target", metavar="NAME", default="", help="Of several targets this one alone; name the units.")


@click.group("uow", cls=ListedGroup)
def uow() -> None:
    """Looks at units of work, and resolves those that are not applied.

    \b
    Examples:
      kainite uow show -p app.properties T-17       its deltas, what it waits for, what waits for it
      kainite uow retry -p app.properties T-17      the target was at fault, and is corrected
      kainite uow discard -p app.properties T-17    the unit was at fault
      kainite uow correct -p app.properties T-17 --as T-17-fixed --deltas fixed.json
      kainite uow locks -p app.properties           who holds the locks that units wait for
    """


uow.add_command(locks)


@uow.command("show")
@properties_option
@click.argument("name", metavar="NAME|ID")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, with all deltas.")
@click.option(
    "--target", "beside", is_flag=True, help="Show each delta's row as the target has it now; asks the target."
)
def show(properties: Path, name: str, as_json: bool, beside: bool) -> None:
    """Shows a unit: its deltas, its cause, the units that it waits for, and those that wait for it.

    With --target the row that the target has now under a delta's key stands below the delta, for the first 100 deltas.
    Of several targets each unit that is not resolved in all of them says what each has of it.

    \b
    Examples:
      kainite uow show -p app.properties T-17
      kainite uow show -p app.properties T-17 --target
      kainite uow show -p app.properties 1307 --json
    """
    settings = load(properties, needs=("applicationName",))
    found = read_detail(*opened_log(settings), name)
    if found is None:
        raise LogRequestError(f"no unit {name!r} is in the log; units that were applied leave it after a while")
    rows = look_beside(settings, found.deltas[:MOST_LOOKED_FOR]) if beside else RowsBeside()
    parts = _parts(settings, found.row.id)
    if as_json:
        each = {"targets": {target: part.told() for target, part in parts.items()}} if settings.log.targets else {}
        say_json(found.as_json() | {"deltas": RowValues(found.deltas)} | each | (rows.as_json() if beside else {}))
    else:
        for line in (*_lines(found), *part_lines(parts)):
            say(line)
        for place, delta in enumerate(found.shown_deltas(_SHOWN_DELTAS)):
            say_rows(f"  {delta}")
            if place < len(rows.rows):
                say_rows(rows.line(place))
        for line in _last_lines(found):
            say(line)


@uow.command("retry")
@properties_option
@_names
@unit_filter([UnitStatus.FAILED])
@_all
@_alone
@_timeout
@why_option
def retry(properties: Path, names: tuple[str, ...], wanted: UnitFilter, everything: bool, target: str, timeout: float,
          why: str) -> int:  # fmt: skip
    """Applies failed units again, and then the units that they hold back.

    Units are named, or selected by filters among the failed ones. Of several targets each one where the unit failed
    tries it again; with --target that one alone.

    \b
    Examples:
      kainite uow retry -p app.properties T-17
      kainite uow retry -p app.properties 1307 1309
      kainite uow retry -p app.properties T-17 --target crm
      kainite uow retry -p app.properties --table sales.order_line --cause 23503
      kainite uow retry -p app.properties --all
    """
    operation = RetryUnits(names, _wanted(names, wanted, everything=everything, target=target), target)
    operations = Operations(_settings(properties, target))
    if not names and not _previewed(operations, operation).count:
        return 0
    return _resolve(operations, operation, why, timeout)


@uow.command("discard")
@properties_option
@_names
@unit_filter([UnitStatus.FAILED])
@_all
@_alone
@_timeout
@why_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def discard(
    properties: Path,
    names: tuple[str, ...],
    wanted: UnitFilter,
    everything: bool,
    target: str,
    timeout: float,
    yes: bool,
    why: str,
) -> int:
    """Gives units up: they are never applied.

    The units that they hold back are applied. Units are named, or selected by filters among the failed ones. A unit
    that is in progress or blocked can be named too: the apply job discards it, unless the target has it already. With
    --target a unit is given up in that one of several targets, where it has failed; the others have it, or will.

    \b
    Examples:
      kainite uow discard -p app.properties T-17
      kainite uow discard -p app.properties T-17 --target crm
      kainite uow discard -p app.properties --cause "is no JSON"
    """
    operation = DiscardUnits(names, _wanted(names, wanted, everything=everything, target=target), target=target)
    operations = Operations(_settings(properties, target))
    if not (yes and names):
        preview = _previewed(operations, operation)
        if not preview.count:
            return 0
        if not yes:
            them = "it" if preview.count == 1 else "them"
            click.confirm(f"{preview.does}. Discard {them}?", abort=True)
            operation = replace(operation, expected=preview.count)
    return _resolve(operations, operation, why, timeout)


@uow.command("correct")
@properties_option
@click.argument("name", metavar="NAME|ID")
@click.option("--as", "new", required=True, metavar="NAME", help="The correction's name, which no unit has had.")
@click.option("--deltas", type=click.File("rb"), required=True, metavar="FILE",
              help="A JSON array of deltas, or what 'uow show --json' printed, edited; - is the input.")  # fmt: skip
@_timeout
@why_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def correct(properties: Path, name: str, new: str, deltas: BinaryIO, timeout: float, why: str, yes: bool) -> None:
    """Sends a correction of a failed unit: when it is applied, the failed unit is discarded.

    The log's owner judges the deltas by the target's catalogue first, and takes only a correction that certainly
    writes a row of the failed unit. "uow show" hides values that are secrets of the settings: write those again.

    \b
    Examples:
      kainite uow show -p app.properties T-17 --json > fixed.json
      kainite uow correct -p app.properties T-17 --as T-17-fixed --deltas fixed.json --why "the amount was negative"
    """
    operation = CorrectUnit(name, new, _array(deltas.read()))
    if not yes:
        preview = Operations(load(properties, needs=("applicationName",))).preview(operation)
        if preview.refusal:
            raise LogRequestError(preview.refusal)
        click.confirm(f"{preview.does[0].upper()}{preview.does[1:]}. Send it?", abort=True)
    carry_out(properties, operation, why, timeout)


def _array(data: bytes) -> str:
    try:
        return array_of_deltas(data)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--deltas") from error


def _settings(properties: Path, target: str) -> Settings:
    """Returns the application's settings; raises SettingsError where units have no part in a target of this name."""
    settings = load(properties, needs=("applicationName",))
    if target:
        of_target(settings, target)
        require_parts(settings)
    return settings


def _wanted(names: tuple[str, ...], wanted: UnitFilter, *, everything: bool, target: str) -> UnitFilter:
    """Returns the filter, if units are named or selected."""
    if target and (wanted or everything or not names):
        raise click.UsageError("--target is about units that are named")
    if not (names or wanted or everything):
        raise click.UsageError("name units, or select them: --status failed, --table, --cause or --all")
    return wanted


def _previewed(operations: Operations, operation: UnitOperation) -> Preview:
    """Returns what an operation would do now; says how many units are selected, if they are not named."""
    preview = operations.preview(operation)
    if not operation.names:
        some = f": {_some(preview.names, preview.count or 0)}" if preview.names else ""
        say(f"{preview.count} of {preview.among} failed units{some}")
    return preview


def _resolve(operations: Operations, operation: UnitOperation, why: str, timeout: float) -> int:
    """Carries an operation on units out, and says what has become of it; returns the exit status."""
    alone = len(operation.names) == 1

    def tell(sentence: str, bad: bool) -> None:
        if bad and not alone:
            say(f"refused: {sentence}", err=True)
        elif not bad:
            say(sentence)

    outcome = operations.carry_out(operation, this_person(), why, timeout=timeout, tell=tell)
    if alone:
        if outcome.result is OperationResult.REFUSED:
            raise LogRequestError(outcome.sentence)
    else:
        say(outcome.sentence + (f"; {outcome.refused} refused" if outcome.refused and operation.names else ""))
    return 1 if outcome.refused or outcome.result is OperationResult.REFUSED else 0


def _some(names: Sequence[str], count: int | None = None) -> str:
    more = f" and {(count or len(names)) - _NAMED} more" if (count or len(names)) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _parts(settings: Settings, tid: int | None) -> Mapping[str, TargetPart]:
    """Returns what each of several targets has of a unit that is not resolved in all of them."""
    if not settings.log.targets or tid is None:
        return {}
    return read_marks(*opened_log(settings), settings.log.targets.names).parts.get(tid, {})


def _lines(found: UnitDetail) -> list[str]:
    """Returns what a person reads about a unit before its deltas."""
    row = found.row
    place = "not dispatched" if row.id is None else f"id {row.id}"
    lines = [f"unit {row.uow} ({place}): {row.status}"]
    if row.cause:
        lines.append(f"cause: {row.cause}")
    if found.before:
        root = found.before[-1]
        lines += [f"waits for: {_named(one)}" for one in found.before[:_NAMED]]
        lines.append(f"root: {_named(root)}" + (f": {root.cause}" if root.cause else ""))
    behind = f"{len(found.behind)}: {_some([one.uow for one in found.behind])}" if found.behind else "none"
    lines.append(f"units that wait behind it: {behind}")
    announced = "an unknown number" if row.trans_in is None else str(row.trans_in)
    lines.append(f"deltas: {row.trans_out} of {announced}, through {', '.join(row.queue) or 'no shard'}")
    return lines


def _last_lines(found: UnitDetail) -> list[str]:
    """Returns what a person reads about a unit behind its deltas."""
    lines = []
    if len(found.deltas) > _SHOWN_DELTAS:
        lines.append(f"  and {len(found.deltas) - _SHOWN_DELTAS} more: --json has all")
    if found.row.offending:
        lines.append(f"offending text: {found.row.offending}")
    return lines


def _named(row: LogRow) -> str:
    return f"{row.uow} (id {row.id}), {row.status}"
