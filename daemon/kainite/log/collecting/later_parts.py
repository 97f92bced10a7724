"""Finds what comes under the name of a whole unit that was dispatched, and is no copy of it. Pure.

Such a part becomes, or joins, the failed unit ``NAME+late``, as a record does that comes after the watermark has ended
its unit (:mod:`kainite.log.collecting.watermark`): it holds back what conflicts with it, and a person decides. It can
be told from a copy while :mod:`kainite.log.state.handed_out` remembers the unit. Copies of the part are none of another
late unit, also when ``NAME+late`` is resolved by then.
"""

from __future__ import annotations

from dataclasses import replace

from kainite.base.words import counted
from kainite.log.collecting.standing import disagreement
from kainite.log.collecting.watermark import Straggler, late_unit
from kainite.log.state.folded import FoldedLog
from kainite.uow.fragment import Fragment


def later_part(state: FoldedLog, fragment: Fragment) -> Straggler | None:
    """Returns the part of a fragment of a dispatched unit that is no copy; None when all of it is, or may be."""
    unit = state.handed_out.get(fragment.uow)
    if unit is None:
        return None
    copies = unit.known(fragment.identities)
    rejects = tuple([reject for reject in fragment.rejects if reject not in unit.told])
    other = next(filter(unit.differs, fragment.ends), None)
    if copies.issuperset(fragment.identities) and not rejects and other is None:
        return None
    wrong = "the count in its end is wrong" if other is None else disagreement(unit.end, other)
    cause = (
        f"it came after unit {fragment.uow} was complete with the {counted(unit.end.count, 'delta')} that its end"
        f" announced: {wrong}, or two units have this name; compare both with the source, then retry or discard it"
    )
    late = replace(fragment, uow=late_unit(state, fragment.uow), ends=(), rejects=rejects)
    return Straggler(late, copies, cause)
