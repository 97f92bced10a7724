"""``kainite doctor``: asks whatever a settings file will need, before anything starts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from kainite.base.display import one_line
from kainite.base.words import counted
from kainite.cli.options import properties_option
from kainite.cli.terminal import say, say_json
from kainite.doctor.asking import ROLES, checks_for, roles_of
from kainite.doctor.finding import DoctorFinding, FindingState
from kainite.doctor.running import run_checks
from kainite.settings import Examination, examine
from kainite.settings.loading.examination import NEEDED

LIMIT_S = 15.0
_NEEDS = {"run": NEEDED, "extract": {"streamName", "extractorName"}, "apply": {"applicationName", "target"}}


@click.command("doctor")
@properties_option
@click.option("--for", "roles", type=click.Choice(ROLES), multiple=True, metavar="COMMAND",
              help="Only what this command needs: run, extract or apply. May be given several times."
              "  [all that the file describes]")  # fmt: skip
@click.option("--limit", type=click.FloatRange(min=0.1), default=LIMIT_S, show_default=True, metavar="SECONDS",
              help="How long each check may take; all begin at once.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(properties: Path, roles: tuple[str, ...], limit: float, as_json: bool) -> int:
    """Asks whatever the file will need, and says what mends each thing that is wrong.

    Changes nothing. Run it on each host with the rights of the process that will run there: it asks as that process
    will. The rights to put records, metrics and audit files are not asked for: these calls have no harmless form.

    \b
    Examples:
      kainite doctor -p app.properties
      kainite doctor -p app.properties --for run          on a shard host
      kainite doctor -p app.properties --for apply --json

    Exit code: 0 when nothing is wrong (! are warnings), 1 when something is.
    """
    found = run_checks(checks_for(_examined(properties, roles), roles), limit)
    if as_json:
        say_json(_as_json(properties, found), indent=True)
    else:
        say("\n".join(_lines(properties, found)))
    return int(_count(found, FindingState.WRONG) > 0)


def _examined(properties: Path, roles: Sequence[str]) -> Examination:
    """Returns the file, with the keys that the commands need which run here, or those that it describes."""
    found = examine(properties, needs={key for role in roles for key in _NEEDS[role]})
    if roles or found.settings is None:
        return found
    return examine(properties, needs={key for role in roles_of(found.settings) for key in _NEEDS[role]})


def _lines(properties: Path, found: Sequence[DoctorFinding]) -> Iterable[str]:
    for area in dict.fromkeys(finding.area for finding in found):
        yield area
        yield from (_line(finding) for finding in found if finding.area == area)
    bad, odd = _count(found, FindingState.WRONG), _count(found, FindingState.WARNING)
    parts = (f"{bad} to mend" if bad else "nothing is wrong", counted(odd, "warning"), counted(len(found), "finding"))
    yield f"{properties}: {', '.join(parts)}"


def _line(finding: DoctorFinding) -> str:
    remedy = f" → {finding.remedy}" if finding.remedy else ""
    return f"  {finding.state.sign} {one_line(f'{finding.what}{remedy}')}"


def _as_json(properties: Path, found: Sequence[DoctorFinding]) -> dict[str, object]:
    wrong = _count(found, FindingState.WRONG)
    return {"file": str(properties), "ok": wrong == 0, "findings": [asdict(finding) for finding in found]}


def _count(found: Iterable[DoctorFinding], state: FindingState) -> int:
    return sum(finding.state is state for finding in found)
