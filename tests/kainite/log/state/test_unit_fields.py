"""An event about a unit names it, its tables, and a command that a shell takes as it stands."""

from __future__ import annotations

from kainite.log.state.unit_fields import UnitCommand, unit_fields


def test_a_unit_is_named_with_its_id_its_tables_and_the_command_that_helps() -> None:
    assert unit_fields("T-17", 3, {"line", "a"}) == {
        "uow": "T-17",
        "id": 3,
        "tables": "a, line",
        "help": "kainite uow show -p FILE T-17",
    }


def test_a_name_is_quoted_for_the_shell_and_what_is_not_known_is_none() -> None:
    fields = unit_fields("it's; rm", helps=UnitCommand.RETRY)
    assert fields["help"] == """kainite uow retry -p FILE 'it'"'"'s; rm'"""
    assert (fields["id"], fields["tables"]) == (None, None)


def test_many_tables_are_counted() -> None:
    assert unit_fields("T", tables=[f"t{n}" for n in range(8)])["tables"] == "t0, t1, t2, t3, t4 and 3 more"
