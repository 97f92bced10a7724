"""What a target is opened with."""

from __future__ import annotations

import pytest

from kainite.settings import ApplySettings, MarkersSettings
from kainite.uow.precedence.levels import precedence_map
from kainite_spark.targets.opener import TargetOpener, TargetRequest
from support.tables import SHOP


def request(levels: dict[str, int] | None = None) -> TargetRequest:
    return TargetRequest("postgresql://u:geheimnis@h/d", SHOP, levels, ApplySettings(), MarkersSettings())


def test_precedence_is_the_users_or_that_of_the_catalogue() -> None:
    assert request().schema().levels == precedence_map(SHOP)
    assert request(dict.fromkeys(SHOP.tables, 2)).schema().levels == dict.fromkeys(SHOP.tables, 2)


def test_the_address_is_not_shown() -> None:
    assert "geheimnis" not in repr(request())


def test_a_kind_takes_whole_groups_unless_it_says_otherwise() -> None:
    def never(_: TargetRequest) -> object:
        raise AssertionError

    opener = TargetOpener(never)  # type: ignore[arg-type]
    assert opener.most_units(ApplySettings(group_units=123)) == 123


def test_a_request_without_a_catalogue_has_no_schema() -> None:
    bare = TargetRequest("exec:load", None, None, ApplySettings(), MarkersSettings())
    with pytest.raises(AssertionError):
        bare.schema()
