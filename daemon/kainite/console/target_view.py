"""How each of several targets stands, as the overview shows it. Pure.

Whether a target is well says the verdict (:mod:`kainite.verdict.units`); nothing is judged here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kainite.log.state.unit_state import UnitState
from kainite.log.views.followed_targets import TargetStanding
from kainite.observe.check import Check, Level
from kainite.verdict.judging import ApplicationVerdict

UNKNOWN: Final = "the log's owner has other targets in its settings file"


@dataclass(frozen=True, slots=True)
class TargetView:
    """A target.

    Attributes:
        name: its name.
        kind: its kind, for people.
        check: whether it is well.
        standing: how far it is; None where the log's owner does not know it.
        behind: the age of the first unit that is not applied there, seconds; 0 where all are, None where nothing tells.
    """

    name: str
    kind: str
    check: Check
    standing: TargetStanding | None
    behind: float | None


@dataclass(frozen=True, slots=True)
class TargetsView:
    """All targets; ``common`` is the id below which every unit is resolved in each of them, None where not known."""

    targets: tuple[TargetView, ...]
    common: int | None


def targets_view(
    kinds: Mapping[str, str],
    standings: Sequence[TargetStanding],
    verdict: ApplicationVerdict,
    age_s: Callable[[UnitState], float | None],
) -> TargetsView:
    """Returns how the targets stand: those of the settings, then others that the log has.

    Args:
        kinds: the kinds of the settings' targets, by name.
        standings: how far the log's targets are.
        verdict: the verdict on the application.
        age_s: tells the seconds since a unit was first heard of; None where nothing tells.
    """
    known = {standing.name: standing for standing in standings}
    checks = {check.name: check for check in verdict.checks}
    views = []
    for name in dict.fromkeys((*kinds, *known)):
        standing = known.get(name)
        check = checks.get(f"target.{name}") or Check(f"target.{name}", Level.UNKNOWN, _why_unknown(standing))
        first = None if standing is None else standing.first
        behind = None if standing is None else 0.0 if not standing.waiting else age_s(first) if first else None
        views.append(TargetView(name, kinds.get(name, "not in the settings file"), check, standing, behind))
    return TargetsView(tuple(views), min((standing.mark for standing in standings), default=None))


def _why_unknown(standing: TargetStanding | None) -> str:
    return UNKNOWN if standing is None else "the log's owner has told no figures of it yet"
