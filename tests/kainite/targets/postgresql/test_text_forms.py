"""The settings reach a session in either way; tests/end_to_end/test_types.py shows that they matter."""

from __future__ import annotations

import psycopg
import pytest

from kainite.targets.postgresql.text_forms import TEXT_FORMS, as_local_settings, as_options


@pytest.mark.parametrize("by_options", [True, False])
def test_a_session_has_the_settings_whatever_its_database_has(postgres: str, by_options: bool) -> None:
    with psycopg.connect(postgres, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET DateStyle = 'German, DMY'".encode())
        admin.execute(f"ALTER DATABASE {admin.info.dbname} SET array_nulls = off".encode())
    with psycopg.connect(postgres, options=as_options() if by_options else "") as connection:
        if not by_options:
            connection.execute(f"SELECT {as_local_settings()}".encode())
        shown = {name: connection.execute(f"SHOW {name}".encode()).fetchone() for name in TEXT_FORMS}
    assert {name: value and value[0].replace(" ", "") for name, value in shown.items()} == TEXT_FORMS
