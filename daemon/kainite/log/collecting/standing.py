"""Judges a unit together with a fragment that is not folded yet: which parts are new, and what is wrong with the unit.

Pure: nothing is written. A number is wrong where another unit has it, or where its turn has passed
(:mod:`kainite.log.state.recent_units`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from kainite.base.words import counted
from kainite.log.format.entry import MISSING
from kainite.log.state.folded import FoldedLog
from kainite.log.state.open_unit import OpenUnit
from kainite.settings import UowOrder, UowSettings
from kainite.uow.delta import UnitEnd
from kainite.uow.fragment import Fragment
from kainite.uow.identity import Identity

COPY: Final = (
    "number {} is that of a unit whose name is not remembered any more: discard this unit if it is that one, sent again"
)


@dataclass(frozen=True, slots=True)
class News:
    """The new part of a fragment.

    Attributes:
        fragment: the fragment without the deltas that the unit has already.
        dropped: how many deltas of the fragment were left out.
        repeated: how many of the dropped deltas have no ordinal.
        beyond: whether the unit is too large with the fragment (:mod:`kainite.log.collecting.too_large`).
    """

    fragment: Fragment
    dropped: int = 0
    repeated: int = 0
    beyond: bool = False

    @property
    def nothing(self) -> bool:
        """Tells whether the fragment has nothing new, so that the log needs no entry for it."""
        fragment = self.fragment
        return not (fragment.count or fragment.ends or fragment.rejects or self.repeated or self.beyond)


def news_of(unit: OpenUnit, fragment: Fragment, copies: Collection[Identity] = ()) -> News:
    """Returns the new part of a fragment; ``copies`` are deltas in the fragment that another unit has."""
    identities = fragment.identities
    if not copies and len(set(identities)) == len(identities) and not (unit.count and any(map(unit.has, identities))):
        return News(fragment)
    fresh: dict[Identity, None] = {}
    without: list[int] = []
    repeated = 0
    for place, identity in enumerate(fragment.identities):
        if identity in fresh or identity in copies or unit.has(identity):
            without.append(place)
            repeated += isinstance(identity, bytes)
        else:
            fresh[identity] = None
    if not without:
        return News(fragment)
    kept = replace(
        fragment,
        deltas=(),
        identities=tuple(fresh),
        piece=fragment.piece if fresh else None,
        without=tuple(without) if fresh else (),
    )
    return News(kept, len(without), repeated)


@dataclass(slots=True)
class Standing:
    """The progress of a unit, with a fragment that is not folded yet.

    Attributes:
        count: how many deltas have come.
        end: the unit's end; None before it has come.
        failing: whether the unit had a cause before the fragment.
        causes: the causes that the fragment adds.
        late_number: whether the unit's only cause is that its number was given up, or that it may be a copy.
        copy: whether the unit's number shows that the unit was dispatched before.
        renumbered: whether the unit's end has lost its number, which the log must then say.
    """

    count: int
    end: UnitEnd | None
    failing: bool
    causes: list[str]
    late_number: bool = False
    copy: bool = False
    renumbered: bool = False

    @property
    def number(self) -> int | None:
        return None if self.end is None else self.end.number

    @property
    def whole(self) -> bool:
        return self.end is not None and self.count >= self.end.count

    @property
    def complete(self) -> bool:
        return self.whole or (self.end is not None and (self.failing or bool(self.causes)))

    def fail_number(self, cause: str) -> None:
        """Removes the unit's number, and notes the cause."""
        self.causes.append(cause)
        self.end = without_number(self.end)
        self.renumbered = True


def judge(unit: OpenUnit, news: News, state: FoldedLog, rules: UowSettings) -> Standing:
    """Returns the unit's standing with the fragment, and with what is wrong with its number or its end."""
    standing = stand(unit, news)
    if standing.end is None:
        return standing
    if rules.order is UowOrder.TIME and news.fragment.ends and not news.fragment.rejects:
        standing.causes.append("an end came, and with uowOrder=time units have none")
    told = bool(news.fragment.ends) and unit.end is None
    if told and rules.order is UowOrder.DENSE and state.recent.had(standing.number):
        standing.copy = True
        return standing
    numbered = bool(news.fragment.ends) or (standing.complete and standing.number is not None)
    if rules.order is UowOrder.DENSE and numbered:
        wrong = wrong_number(unit.uow, standing.number, state, rules)
        if wrong is not None:
            standing.late_number = wrong.late and not (unit.causes or standing.causes)
            standing.fail_number(wrong.cause)
    elif told and state.recent.may_have_had(standing.number):
        standing.late_number = not (unit.causes or standing.causes)
        standing.fail_number(COPY.format(standing.number))
    return standing


def stand(unit: OpenUnit, news: News) -> Standing:
    """Returns the unit's standing with the fragment.

    Looks at the new part alone: collecting a unit takes time linear in its deltas, however many fragments it has.
    """
    fragment = news.fragment
    failing = bool(unit.causes) or unit.given_up is not None
    causes = [reject.cause for reject in fragment.rejects] if fragment.rejects else []
    standing = Standing(unit.count + len(fragment.identities), unit.end, failing, causes)
    for end in fragment.ends:
        _add_end(standing, end)
    if standing.end is not None and standing.count > standing.end.count:
        standing.causes.append(f"{counted(standing.count, 'delta')} came, its end announced {standing.end.count}")
    return standing


def _add_end(standing: Standing, end: UnitEnd) -> None:
    if (known := standing.end) is None:
        standing.end = end
    elif end != known:
        standing.causes.append(disagreement(known, end))


def disagreement(known: UnitEnd, end: UnitEnd) -> str:
    """Returns the cause that two ends of one unit are."""
    return (
        f"two ends disagree: count {known.count}, number {known.number}, {known.kind} "
        f"and count {end.count}, number {end.number}, {end.kind}"
    )


def without_number(end: UnitEnd | None) -> UnitEnd | None:
    """Returns an end without its number."""
    return None if end is None else msgspec.structs.replace(end, number=None)


@dataclass(frozen=True, slots=True)
class WrongNumber:
    """The cause for which a unit's number is wrong.

    ``late``: no other unit is known to have the number, which may have been given up.
    """

    cause: str
    late: bool = False


def wrong_number(uow: str, number: int | None, state: FoldedLog, rules: UowSettings) -> WrongNumber | None:
    """Returns the fault of a unit's number with ``uowOrder=dense``; None for a sound number, and with another order."""
    if number is None:
        return WrongNumber("its end has no number, and uowOrder is dense")
    holder = state.recent.holder(number) or state.ready.get(number)
    if holder is not None and holder != uow and not holder.startswith(MISSING):
        return WrongNumber(f"number {number} is that of unit {holder} too")
    if holder is None and number in state.recent.numbers:
        return WrongNumber(f"number {number} is that of another unit too, which was dispatched before")
    if number < next_number(state, rules):
        cause = f"number {number} comes after it was given up or dispatched, or below uowFirstNumber"
        return WrongNumber(cause, late=number >= rules.first_number)
    return None


def next_number(state: FoldedLog, rules: UowSettings) -> int:
    """Returns the number whose turn it is."""
    return rules.first_number if state.next_number is None else state.next_number


def may_go(number: int | None, state: FoldedLog, rules: UowSettings) -> bool:
    """Returns whether a complete unit may be dispatched now; units without a number, or with a past one, may."""
    return rules.order is not UowOrder.DENSE or number is None or number <= next_number(state, rules)
