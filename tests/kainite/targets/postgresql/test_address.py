from __future__ import annotations

from pathlib import Path

import pytest

from kainite.targets.postgresql.address import ADDRESS, libpq_url


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_every_spelling_of_the_scheme_reads_as_libpqs(scheme: str) -> None:
    assert libpq_url(f"{scheme}://u:p@h:1/d?a=b") == "postgresql://u:p@h:1/d?a=b"
    assert ADDRESS.parse(f"{scheme}://u@h/d", Path("/etc")) == "postgresql://u@h/d"


def test_an_address_that_can_be_read_in_two_ways_is_refused() -> None:
    with pytest.raises(ValueError, match="percent-encoded") as refused:
        ADDRESS.parse("postgresql://u:geheim/nis@h/d", Path("/etc"))
    assert "geheim" not in str(refused.value)


def test_its_password_is_hidden_and_known() -> None:
    assert ADDRESS.show("postgresql://u:geheimnis@h/d") == "postgresql://u:***@h/d"
    assert list(ADDRESS.secrets("postgresql://u:geheimnis@h/d?password=other")) == ["other", "geheimnis"]
