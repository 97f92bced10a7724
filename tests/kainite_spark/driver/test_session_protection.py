"""What Spark lacks to carry secrets between machines."""

from __future__ import annotations

import pickle

from kainite.settings import AwsSettings
from kainite.uow.catalogue.tables import Catalogue
from kainite_spark.driver.session import unprotected
from kainite_spark.executor.apply_options import ApplyOptions
from kainite_spark.executor.tasks import TaskSettings
from kainite_spark.targets.opening import open_target

ALL = {"spark.authenticate": "true", "spark.network.crypto.enabled": "true", "spark.io.encryption.enabled": "true"}


def test_a_local_master_lacks_nothing() -> None:
    assert not unprotected("local[4]", {})


def test_a_cluster_lacks_what_is_not_turned_on() -> None:
    assert unprotected("spark://h:7077", {**ALL, "spark.authenticate": "false"}) == ("spark.authenticate",)
    assert unprotected("spark://h:7077", {}) == tuple(ALL)
    assert not unprotected("yarn", ALL)
    with_tls = {**ALL, "spark.network.crypto.enabled": "false", "spark.ssl.rpc.enabled": "true"}
    assert not unprotected("yarn", with_tls)


def test_a_task_holds_the_password_and_never_shows_it() -> None:
    for target in ("postgresql://u:geheimnis@h/d", "exec:cat --password geheimnis"):
        opened = open_target(target, Catalogue({}))
        settings = TaskSettings("run", AwsSettings(), "table", "0", opened, ApplyOptions())
        assert b"geheimnis" in pickle.dumps(settings)
        assert "geheimnis" not in repr(settings)
