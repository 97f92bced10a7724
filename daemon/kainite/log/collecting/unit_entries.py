"""Writes the entries of a unit: a FRAGMENT for parts that are kept, the UNIT when the unit is dispatched."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from kainite.base.logs import event
from kainite.log.collecting.standing import News, Standing, next_number
from kainite.log.collecting.watermark import Ended
from kainite.log.format.entry import EntryKind, Fault, FragmentMeta, SchemeMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.handed_out import MOST_DELTAS
from kainite.log.state.journal import Journal
from kainite.log.state.open_unit import OpenUnit
from kainite.log.state.ordinal_pages import ordinals_in
from kainite.log.state.unit_fields import unit_fields
from kainite.settings import Isolation, UowEnd, UowSettings
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.scheme import Scheme
from kainite.uow.touches import NOTHING, Touched

_logger = logging.getLogger(__name__)

RELEASED: Final = 500
"""The most units that one decision releases; so many take some milliseconds."""


def note_scheme(journal: Journal, scheme: Scheme | None) -> None:
    """Writes a SCHEME entry, unless the log knows the scheme."""
    if scheme is not None and scheme.id not in journal.state.schemes:
        tables = {name: (table.digest, table.parents) for name, table in scheme.tables.items()}
        journal.write(EntryKind.SCHEME, SchemeMeta(scheme.id, tables))


def keep(journal: Journal, rules: UowSettings, shard: str, news: News, standing: Standing) -> None:
    """Writes a FRAGMENT entry: the unit stays open, or goes on collecting although it has failed."""
    fragment = news.fragment
    count, digests = len(fragment.identities), digests_of(fragment)
    for reject in _faulty(fragment):
        event(_logger, logging.ERROR, "delta refused", **unit_fields(fragment.uow, tables=fragment.touched.tables),
              shard=shard, cause=reject.cause, line=reject.line)  # fmt: skip
    watermark = rules.end is UowEnd.WATERMARK
    meta = FragmentMeta(
        uow=fragment.uow,
        shard=shard,
        count=count,
        ordinals=ordinals_of(fragment) if digests else fragment.identities,  # type: ignore[arg-type]  # no digests
        end=standing.end if fragment.ends or standing.renumbered else None,
        causes=tuple(standing.causes),
        offending=offending_of(fragment),
        digests=digests,
        repeated=news.repeated,
        misfits=tuple([misfit.cause for misfit in fragment.misfits]),
        fault=Fault.TOO_LARGE if news.beyond else None,
        without=fragment.without,
        time=fragment.time,
        arrived_ms=fragment.arrived_ms,
        watermark=watermark and bool(count or fragment.rejects or news.beyond),  # copies delay nothing
    )
    journal.write(EntryKind.FRAGMENT, meta, fragment.touched, fragment.piece, fragment.signed)


def dispatch(
    journal: Journal,
    rules: UowSettings,
    unit: OpenUnit,
    touched: Touched | None = None,
    fragment: Fragment | None = None,
    *,
    late: bool = False,
    far: str | None = None,
    ended: Ended | None = None,
) -> None:
    """Writes the UNIT entry.

    Args:
        journal: gets the entry.
        rules: the settings by which units are collected.
        unit: the unit with all parts that have come.
        touched: the rows and tables that the unit touches; None means those that the log has of the unit.
        fragment: the part of the unit that is not in the log yet.
        late: whether the unit's only cause is that its number was given up, or that it may be a copy.
        far: why the order does not follow the unit's number; None where it does.
        ended: how the watermark ends the unit; None if the unit has an end of its own.
    """
    fault, causes = _wrong_with(unit, ended, far, late=late)
    by_watermark = ended is not None or rules.end is UowEnd.WATERMARK
    meta = UnitMeta(
        uow=unit.uow,
        count=unit.count,
        shards=tuple(unit.shards),
        fragments=tuple(unit.fragments),
        number=unit.number,
        kind=unit.kind,
        cause="; ".join(causes) or None,
        offending=unit.offending,
        fault=fault,
        without=fragment.without if fragment is not None else (),
        time=fragment.time if fragment is not None else ended.time if ended is not None else None,
        arrived_ms=fragment.arrived_ms if fragment is not None else unit.arrived_ms if by_watermark else None,
        watermark=by_watermark,
    )
    if meta.cause:
        about = unit_fields(unit.uow, journal.state.next_id, (touched or unit.touched).tables)
        event(_logger, logging.ERROR, "unit failed", **about, cause=meta.cause)
    if rules.isolation is not Isolation.SERIALIZE:
        touched = NOTHING
    elif touched is None:
        touched = unit.touched.frozen()
    if fragment is None:
        journal.write(EntryKind.UNIT, meta, touched)
    else:
        # Only what the fragment itself touches came as these bytes: the unit may touch more.
        signed = fragment.signed if touched is fragment.touched else b""
        journal.write(EntryKind.UNIT, meta, touched, fragment.piece, signed)
    journal.state.handed_out.forget(unit.uow)  # another unit had the name before, and the name had left
    if ended is None and fault is not Fault.MALFORMED:
        remember(journal.state, unit, fragment)


def remember(state: FoldedLog, unit: OpenUnit, fragment: Fragment | None = None) -> None:
    """Remembers what a whole unit has, unless it is too large.

    Args:
        state: the log.
        unit: the unit with all parts that have come.
        fragment: the part of the unit that is not in the log yet.
    """
    if unit.end is not None and unit.whole and unit.count <= MOST_DELTAS and not unit.too_large:
        here = fragment.identities if fragment is not None else ()
        state.handed_out.add(unit.uow, unit.end, (*ordinals_in(unit.ordinals), *unit.digests, *here))


def _wrong_with(unit: OpenUnit, ended: Ended | None, far: str | None, *, late: bool) -> tuple[Fault | None, list[str]]:
    """Returns the fault and the causes of a dispatched unit; none for a sound unit. Arguments as :func:`dispatch`."""
    if ended is None and not (unit.causes or unit.misfits or unit.given_up or far):
        return None, []
    causes = [*unit.causes, *([far] if far else [])]
    incomplete = unit.given_up is not None and not unit.whole
    if unit.given_up is not None and incomplete:
        causes.append(unit.given_up)
    if unit.causes:
        fault = Fault.LATE_NUMBER if late else Fault.MALFORMED
    elif ended is not None and ended.late is not None:
        fault = Fault.LATE
        causes.append(ended.late)
    elif incomplete:
        fault = Fault.INCOMPLETE
    elif far:
        fault = Fault.FAR_NUMBER
    elif unit.misfits:
        fault = Fault.MISFIT
    else:
        return None, causes
    return fault, causes + unit.misfits


def release_ready(journal: Journal, rules: UowSettings) -> None:
    """Dispatches complete units whose turn it is, until the decision has released enough (:data:`RELEASED`).

    The owner releases the others in decisions of its own (:func:`kainite.log.collecting.overdue.expire`): thousands may
    have waited for one number.
    """
    state = journal.state
    while len(journal.entries) < RELEASED and (uow := state.ready.get(next_number(state, rules))) is not None:
        dispatch(journal, rules, state.open[uow])


def ordinals_of(fragment: Fragment) -> tuple[int, ...]:
    """Returns the ordinals of a fragment's deltas that have one."""
    return tuple([identity for identity in fragment.identities if isinstance(identity, int)])


def digests_of(fragment: Fragment) -> tuple[bytes, ...]:
    """Returns the identities of a fragment's deltas that have no ordinal."""
    return tuple([identity for identity in fragment.identities if isinstance(identity, bytes)])


def offending_of(fragment: Fragment) -> str | None:
    """Returns the first emitted line of a fragment that is no delta, or that does not fit the catalogue."""
    return next((reject.line for reject in _faulty(fragment)), None)


def _faulty(fragment: Fragment) -> Sequence[Reject]:
    """Returns what is wrong with a fragment; mostly nothing is."""
    return (*fragment.rejects, *fragment.misfits) if fragment.rejects or fragment.misfits else ()
