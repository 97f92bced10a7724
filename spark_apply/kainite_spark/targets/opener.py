"""The contract between the apply job and a kind of target: how a target of the kind is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from kainite.doctor.finding import DoctorFinding
from kainite.settings import ApplySettings, MarkersSettings
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.targets.contract import Target
from kainite_spark.targets.hooks import HookPolicy, HookSwitch
from kainite_spark.targets.schema import Schema
from kainite_spark.targets.stop_requests import StopRequests


@dataclass(frozen=True, slots=True)
class TargetRequest:
    """All that a target is opened with.

    Attributes:
        url: the address, as ``target`` has it; ``repr`` leaves it out, since it may hold a password.
        catalogue: the target's tables; None for a kind that cannot be asked for them, where no file describes them.
        levels: precedence by table name, if the user gives it; it is computed from the catalogue by default.
        apply: the settings of the apply job.
        markers: the markers of child processes.
    """

    url: str = field(repr=False)
    catalogue: Catalogue | None
    levels: Mapping[str, int] | None
    apply: ApplySettings
    markers: MarkersSettings

    def schema(self) -> Schema:
        """Returns the tables of a target whose catalogue is known.

        Raises:
            CatalogueError: a cycle of tables whose foreign keys cannot be deferred.
        """
        assert self.catalogue is not None, "a database has a catalogue"
        return Schema.of(self.catalogue, self.levels)

    def policy(self) -> HookPolicy:
        """Returns which triggers and rules of a target may fire; raises CatalogueError if it names no table."""
        return HookPolicy.of(self.apply, self.catalogue)


def _group_units(apply: ApplySettings) -> int:
    return apply.group_units


@dataclass(frozen=True, slots=True)
class TargetOpener:
    """A kind of target, as :mod:`kainite_spark.targets.opening` uses it.

    Attributes:
        open: returns a target; opens no connection and starts no process.
        hooks: returns the target whose triggers and rules are looked at; None for a kind that has none to look at.
        most_units: returns how many units a group has at most; a kind that loads fewer at once says so.
        stops: returns the requests of comparisons in a target, given its URL and the log's name there; None for a kind
            that is not compared.
        look: yields, for ``kainite doctor``, what the role may not do there; None for a kind that has nothing to ask.
        taken: returns, given a target's URL, the log of each table that a log has taken; None for a kind that is not
            asked.
    """

    open: Callable[[TargetRequest], Target]
    most_units: Callable[[ApplySettings], int] = _group_units
    hooks: Callable[[TargetRequest], HookSwitch] | None = None
    look: Callable[[TargetRequest], Iterable[DoctorFinding]] | None = None
    stops: Callable[[str, str], StopRequests] | None = None
    taken: Callable[[str], Mapping[str, str]] | None = None
