"""The plan's orders: the loop of the daemon and the one of the tests know each of them."""

from __future__ import annotations

import inspect
from typing import get_args

from kainite.fleet.service import FleetService
from kainite.fleet.steps.plan import Order, PlanStep
from support.duty_fleet import SimWorker


def test_each_order_is_carried_out_by_the_daemon_and_by_the_tests() -> None:
    orders = {order.__name__ for order in get_args(Order)}
    for loop in (FleetService, SimWorker):
        source = inspect.getsource(loop)
        assert {order for order in orders if f"case {order}(" in source} == orders


def test_a_step_of_nothing_writes_and_orders_nothing() -> None:
    step = PlanStep()
    assert (step.before, step.commit, step.after, step.pings, step.idle) == ((), None, (), False, False)
