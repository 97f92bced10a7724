from __future__ import annotations

import pickle

import pytest

from kainite.base.errors import SettingsError
from kainite_spark.targets.mariadb.target import MariadbTarget
from kainite_spark.targets.opening import open_target
from support.tables import SHOP


def test_a_target_opens_no_connection_shows_no_password_and_goes_to_tasks() -> None:
    target = open_target("mysql://u:geheimnis@nowhere/d", SHOP)
    assert isinstance(target, MariadbTarget)
    assert "geheimnis" not in repr(target)
    assert pickle.loads(pickle.dumps(target)) == target


def test_an_address_that_cannot_be_read_is_a_wrong_setting() -> None:
    with pytest.raises(SettingsError, match="the target's address names no database"):
        open_target("mariadb://u@h", SHOP)
