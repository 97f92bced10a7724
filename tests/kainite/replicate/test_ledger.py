"""How the ledger spells a step's work, and the sessions of steps."""

from __future__ import annotations

import pytest

from kainite.replicate import ledger
from kainite.replicate.ledger import CopyStep, StatementStep


@pytest.mark.parametrize("work", [CopyStep(("COPY a", "COPY ä"), "COPY b"), StatementStep("CREATE INDEX …")])
def test_work_reads_back_as_it_was_written(work: CopyStep | StatementStep) -> None:
    assert ledger.decoded(ledger.encoded(work)) == work


def test_sessions_are_named_by_log_and_step_in_what_postgresql_keeps() -> None:
    name = ledger.session_name("log/0", 10**12)
    assert name != ledger.session_name("log/1", 10**12)
    assert len(name) <= 63
    assert name.startswith(ledger.session_name("log/0").removesuffix("%"))
    assert "%" not in name
    assert "_" not in name  # LIKE would take it for any character


def test_the_stage_of_statements_is_the_one_that_the_sql_names() -> None:
    spelled = str(ledger.STATEMENT_STAGE)
    assert all(f"stage < {spelled}" in sql for sql in (ledger.READ, ledger.FORGET_COPIES))
