"""What is new in a fragment, and what is wrong with its unit then."""

from __future__ import annotations

from kainite.log.collecting.standing import judge, may_go, news_of, next_number, stand, wrong_number
from kainite.log.format.entry import EntryKind, FragmentMeta, UnitMeta
from kainite.log.state.folded import FoldedLog
from kainite.log.state.journal import Journal
from kainite.log.state.open_unit import OpenUnit
from kainite.settings import UowOrder, UowSettings
from kainite.uow.delta import UnitEnd, UnitKind
from kainite.uow.fragment import Fragment, Reject
from kainite.uow.touches import NOTHING

DENSE = UowSettings(order=UowOrder.DENSE, first_number=1)


def opened(*ordinals: int, end: UnitEnd | None = None) -> OpenUnit:
    unit = OpenUnit("T", 0)
    unit.add(0, FragmentMeta("T", "s", len(ordinals), ordinals, end), NOTHING)
    return unit


def test_deltas_that_the_unit_has_are_left_out() -> None:
    news = news_of(opened(1), Fragment("T", identities=(1, 2, 2, b"d" * 16)), copies=(b"d" * 16,))
    assert (news.fragment.identities, news.fragment.without) == ((2,), (0, 2, 3))
    assert (news.dropped, news.repeated, news.nothing) == (3, 1, False)
    assert news_of(opened(1), Fragment("T", identities=(1,))).nothing


def test_a_first_fragment_is_all_new_but_for_its_own_copies() -> None:
    fragment = Fragment("T", identities=(1, 2))
    assert news_of(OpenUnit("T", 0), fragment).fragment is fragment
    assert news_of(OpenUnit("T", 0), Fragment("T", identities=(1, 1))).fragment.without == (1,)


def test_two_ends_disagree_and_more_came_than_announced() -> None:
    unit = opened(1, 2, end=UnitEnd(2))
    assert stand(unit, news_of(unit, Fragment("T", ends=(UnitEnd(2),)))).causes == []
    standing = stand(unit, news_of(unit, Fragment("T", identities=(3,), ends=(UnitEnd(2, kind=UnitKind.REVERSAL),))))
    assert "two ends disagree" in standing.causes[0]
    assert standing.causes[1] == "3 deltas came, its end announced 2"
    assert standing.complete


def test_a_cause_makes_a_unit_complete_once_its_end_has_come() -> None:
    bad = Fragment("T", rejects=(Reject("bad", "?"),))
    assert not stand(opened(1), news_of(opened(1), bad)).complete
    unit = opened(1, end=UnitEnd(2))
    assert stand(unit, news_of(unit, bad)).complete


def test_a_wrong_number_is_taken_from_the_unit() -> None:
    state = FoldedLog()
    Journal(state, 0).write(EntryKind.UNIT, UnitMeta("A", 0, number=1))
    unit = OpenUnit("B", 0)
    standing = judge(unit, news_of(unit, Fragment("B", ends=(UnitEnd(0, 1),))), state, DENSE)
    assert (standing.number, standing.late_number) == (None, False)
    assert standing.causes == ["number 1 is that of unit A too"]


def test_numbers_go_in_turn_where_the_order_is_dense() -> None:
    state = FoldedLog()
    assert next_number(state, DENSE) == 1
    assert [may_go(number, state, DENSE) for number in (None, 1, 2)] == [True, True, False]
    assert may_go(2, state, UowSettings())
    below = wrong_number("T", 0, state, DENSE)
    assert below is not None
    assert not below.late
