"""``kainite apply --check`` and ``--triggers-on``: what folds, what fires, and what was switched off.

The table and the JSON are two views of one :class:`HooksReport`. Nothing is changed, except by :func:`switch_on`.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from dataclasses import asdict, dataclass, replace

from rich.table import Table as RichTable
from rich.text import Text

from kainite.base.errors import SettingsError
from kainite.cli.terminal import say, say_json, stdout
from kainite.settings import Settings
from kainite.settings.exposure.finding import Exposure
from kainite.settings.exposure.listing import exposures
from kainite.uow.catalogue.several import catalogue_of
from kainite.uow.catalogue.tables import Catalogue
from kainite.uow.touched.deltas import TouchedKeys
from kainite.uow.touched.key import PLAIN
from kainite_spark.targets.hooks import FoundHooks, Hook, HookPolicy
from kainite_spark.targets.opening import open_hooks
from kainite_spark.targets.statements.net_effect import why_not_folded

_FIRES = "a change may fire a trigger or a rule, so that nothing is folded past it"


@dataclass(frozen=True, slots=True)
class FoldLine:
    """A table, and why changes of its rows are not folded; None if they are."""

    table: str
    not_folded: str | None


@dataclass(frozen=True, slots=True)
class HooksReport:
    """The contents of the report.

    Attributes:
        ok: whether the apply job starts with these triggers.
        why_refused: why not, as its start says it.
        tables: all tables of the catalogue.
        firing: the triggers and rules that fire when units are applied.
        refused: those of them that may not; with ``targetTriggers=off`` the start switches them off.
        off: those that Kainite has switched off.
        exposed: what the settings expose to others.
    """

    ok: bool
    tables: tuple[FoldLine, ...]
    firing: tuple[Hook, ...]
    refused: tuple[Hook, ...]
    off: tuple[Hook, ...]
    why_refused: str | None = None
    exposed: tuple[Exposure, ...] = ()


def target_url(configured: Settings) -> str:
    """Returns the target's address; raises SettingsError if there is none."""
    if configured.apply.target is None:
        raise SettingsError(f"{configured.path}: target is missing: the URL of the database that units are applied to")
    return configured.apply.target


def show(configured: Settings, *, as_json: bool) -> int:
    """Prints the report on a target; returns the exit code."""
    shown = replace(look(configured), exposed=exposures(configured))
    if as_json:
        say_json(asdict(shown), indent=True)
    else:
        _print(shown)
    return 0 if shown.ok else 1


def look(configured: Settings) -> HooksReport:
    """Returns the report on a target, as it is now.

    Raises:
        KainiteError: as :func:`~kainite_spark.targets.opening.open_hooks`; or the target does not answer.
    """
    url, catalogue = target_url(configured), catalogue_of(configured) or Catalogue({})
    opened = open_hooks(url, catalogue, configured.apply)
    if opened is None:
        found = FoundHooks()
    else:
        with closing(opened):
            found = opened.hooks()
    policy = HookPolicy.of(configured.apply, catalogue)
    return report(catalogue, found, policy, folds=configured.apply.fold and opened is not None)


def switch_on(configured: Settings) -> int:
    """Switches on what an apply job has switched off; returns the exit code."""
    url, catalogue = target_url(configured), catalogue_of(configured) or Catalogue({})
    opened = open_hooks(url, catalogue, configured.apply)
    if opened is None:
        raise SettingsError(f"{configured.path}: a loader decides about triggers itself")
    with closing(opened):
        done = opened.switch_on()
    for hook in done:
        say(f"on: {hook}")
    say(f"{len(done)} triggers and rules were switched on")
    return 0


def report(catalogue: Catalogue, found: FoundHooks, policy: HookPolicy, *, folds: bool) -> HooksReport:
    """Returns the report.

    Args:
        catalogue: the target's tables.
        found: its triggers and rules.
        policy: which of them may fire.
        folds: whether anything is folded at all.
    """
    keys = TouchedKeys(catalogue, PLAIN)
    lines = tuple(
        FoldLine(
            name, _why_not(catalogue, keys, name, found.hooked) if folds else "the settings, or a loader, exclude it"
        )
        for name in sorted(catalogue.tables)
    )
    refused = tuple(policy.unwanted(found.firing))
    return HooksReport(found.why_refused is None, lines, found.firing, refused, found.off, found.why_refused)


def _why_not(catalogue: Catalogue, keys: TouchedKeys[str], name: str, hooked: Collection[str]) -> str | None:
    return _FIRES if name in hooked else why_not_folded(catalogue, keys, name)


def _print(shown: HooksReport) -> None:
    console = stdout()
    table = RichTable(box=None, header_style="bold", pad_edge=False)
    for column in ("table", "folds", "why not"):
        table.add_column(column, overflow="fold")
    for line in shown.tables:
        table.add_row(Text(line.table), "no" if line.not_folded else "yes", Text(line.not_folded or ""))
    console.print(table)
    for hook in shown.firing:
        if hook not in shown.refused:
            word, style = "fires", "yellow"
        else:
            word, style = ("to be switched off", "yellow") if shown.ok else ("refused", "bold red")
        console.print(Text(f"{word}: {hook}", style=style), soft_wrap=True)
    for hook in shown.off:
        console.print(Text(f"switched off: {hook}", style="dim"), soft_wrap=True)
    if shown.why_refused:
        console.print(Text(shown.why_refused, style="bold red"), soft_wrap=True)
    for exposure in shown.exposed:
        console.print(Text(f"exposed: {exposure}", style="yellow"), soft_wrap=True)
