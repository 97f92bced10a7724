"""When units that the target was busy with are tried again."""

from __future__ import annotations

from kainite_spark.plan.busy_units import MAX_DELAYED, REST, DelayedUnits, UnitInFront


def test_pauses_double_with_each_try() -> None:
    delayed = DelayedUnits()
    delayed.delay(7, 0.0)
    assert delayed.take_due(0.9, others_wait=False) == []
    assert delayed.take_due(1.0, others_wait=False) == [7]
    assert delayed.take_due(9.0, others_wait=False) == [], "it is elsewhere until the target is busy with it again"
    delayed.delay(7, 10.0)
    assert delayed.take_due(11.9, others_wait=False) == []
    assert delayed.take_due(12.0, others_wait=False) == [7]


def test_those_that_wait_longest_come_first_and_each_micro_batch_is_in_log_order() -> None:
    delayed = DelayedUnits()
    for n in range(MAX_DELAYED + 1):
        delayed.delay(100 - n, n / 100)
    assert delayed.take_due(5.0, others_wait=False) == list(range(101 - MAX_DELAYED, 101))
    assert delayed.take_due(5.0, others_wait=False) == [100 - MAX_DELAYED]


def test_other_units_have_most_of_the_time_while_any_wait() -> None:
    delayed = DelayedUnits()
    delayed.delay(1, 0.0)
    delayed.delay(2, 0.0)
    assert delayed.take_due(2.0, others_wait=True) == [1, 2]
    delayed.ran(2.0, 4.0, not_tried=[2])
    assert delayed.take_due(4.0 + 2 * REST - 0.1, others_wait=True) == []
    assert delayed.take_due(4.0, others_wait=False) == [2], "what was not tried is due at once"


def test_a_unit_that_is_removed_begins_anew() -> None:
    delayed = DelayedUnits()
    delayed.delay(1, 0.0)
    delayed.delay(1, 0.0)
    assert (len(delayed), list(delayed), 1 in delayed) == (1, [1], True)
    assert delayed.remove(1)
    assert not delayed.remove(1)
    delayed.delay(1, 0.0)
    assert delayed.take_due(1.0, others_wait=False) == [1]


def test_the_unit_in_front_is_tried_after_pauses_and_tells_how_long_all_have_waited() -> None:
    front = UnitInFront()
    assert not front.pauses(0.0)
    assert front.busy(3, 10.0) == 0.0
    assert front.pauses(10.4)
    assert not front.pauses(10.5)
    assert front.busy(3, 11.0) == 1.0
    assert front.pauses(11.9), "the second pause is longer"
    assert front.busy(4, 20.0) == 10.0, "another unit's time goes on where the first one's ended"
    front.leave(3)
    assert front.tid == 4
    front.leave(4)
    assert front.tid is None
    assert not front.pauses(20.1)


def test_the_time_that_all_have_waited_comes_back_while_no_unit_is_waited_for() -> None:
    front = UnitInFront()
    front.busy(3, 10.0)
    assert front.busy(3, 40.0) == 30.0
    front.leave(3)
    assert front.busy(4, 50.0) == 20.0
    front.leave(4)
    assert front.busy(5, 500.0) == 0.0
