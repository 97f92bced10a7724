"""Who holds a row, as the owner answers it."""

from __future__ import annotations

import pytest

from kainite.peers.messages import Holder, RequestRefused, RowAnswer, RowRequest
from kainite.peers.rows import answering
from kainite.peers.rows.answering import row_answer
from kainite.uow.current_catalogue import CurrentCatalogue
from support.followed_log import LOG, append
from support.log_members import members

NO_CATALOGUE = CurrentCatalogue(lambda: None, None)


async def test_an_answer_tells_of_so_many_units_and_how_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "MOST_UNITS", 1)
    async with members() as all_:
        log = await all_.join("a")
        await append(log, 1)
        await append(log, 1, "s1")
        assert log.owner is not None
        unsigned = RowRequest(0, 4, LOG, "t", {"id": "1"})
        answer = await row_answer(unsigned, log.owner, NO_CATALOGUE)
        assert isinstance(answer, RowAnswer)
        assert (answer.generation, answer.number) == (log.owner.generation, 4)
        assert len(answer.units) == min(answer.count, 1)
        assert all(isinstance(unit, Holder) for unit in answer.units)


async def test_a_table_that_the_catalogue_does_not_have_is_refused_in_words() -> None:
    from kainite.uow.catalogue.tables import Catalogue

    async with members() as all_:
        log = await all_.join("a")
        assert log.owner is not None
        catalogue = CurrentCatalogue(lambda: Catalogue({}), Catalogue({}))
        answer = await row_answer(RowRequest(0, 4, LOG, "t", {"id": "1"}), log.owner, catalogue)
        assert isinstance(answer, RequestRefused)
        assert "name the table as the catalogue does" in answer.cause
