"""The cases of loaders: requests as the apply job makes them, each case with an apply job of its own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kainite.base.markers import Batching
from kainite.conform.cases.case import Case, Messages
from kainite.conform.cases.loader import loader_cases
from kainite.conform.cases.samples import Samples, generic


def requests_of(case: Case) -> list[dict[str, Any]]:
    return [json.loads(payload) for step in case.steps if isinstance(step, Messages) for payload in step.payloads]


CASES = loader_cases(Batching.SUPERVISOR, generic())


def test_every_request_of_a_job_names_its_log_and_its_generation_where_it_has_one() -> None:
    for request in (request for case in CASES for request in requests_of(case)):
        assert ("logPartition" in request) is (request["action"] not in ("prepare", "rows"))
        assert ("generation" in request) is (request["action"] not in ("prepare", "applied", "rows"))


def test_no_two_cases_load_the_same_units() -> None:
    loaded = [
        {request["transactionId"] for request in requests_of(case) if request["action"] == "load"} for case in CASES
    ]

    assert sum(map(len, loaded)) == len(set().union(*loaded)) > 0


def test_a_job_that_was_replaced_loads_under_the_older_generation() -> None:
    (fence,) = [case for case in CASES if case.name == "fence"]
    *_, replaced, load = requests_of(fence)

    assert (replaced["action"], load["action"]) == ("takeOver", "load")
    assert replaced["generation"] > load["generation"]


@pytest.mark.parametrize(("batching", "there"), [(Batching.SINGLE, False), (Batching.WORKER, True)])
def test_a_batch_is_tried_where_there_are_batches(batching: Batching, there: bool) -> None:
    assert ("batch" in {case.name for case in loader_cases(batching, generic())}) is there


def test_requests_of_the_authors_own_are_tried_each_alone() -> None:
    own = Samples((b'{"action":"x"}', b'{"action":"y"}'), own=True)
    (last,) = [case for case in loader_cases(Batching.SINGLE, own) if case.name == "records"]

    assert [step.payloads for step in last.steps if isinstance(step, Messages)] == [
        (own.payloads[0],),
        (own.payloads[1],),
    ]
