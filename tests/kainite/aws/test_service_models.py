"""The loader of services' descriptions: it finds what botocore's own finds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from botocore.exceptions import DataNotFoundError
from botocore.loaders import create_loader

from kainite.aws.service_models import ServiceModels


@pytest.mark.parametrize("service", ["dynamodb", "kinesis", "sts"])
@pytest.mark.parametrize("kind", ["service-2", "endpoint-rule-set-1"])
def test_descriptions_are_botocores(service: str, kind: str) -> None:
    assert ServiceModels(None).load_service_model(service, kind) == create_loader().load_service_model(service, kind)


@pytest.mark.parametrize("name", ["endpoints", "partitions", "sdk-default-configuration", "_retry"])
def test_other_files_are_botocores(name: str) -> None:
    assert ServiceModels(None).load_data(name) == create_loader().load_data(name)


def test_an_unknown_service_is_an_error() -> None:
    with pytest.raises(DataNotFoundError):
        ServiceModels(None).load_service_model("kinesys", "service-2")


def test_further_folders_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "own" / "2013-12-02").mkdir(parents=True)
    (folder / "service-2.json").write_text(json.dumps({"metadata": {"serviceId": "own"}}))
    monkeypatch.setenv("OF_TEST", str(tmp_path))
    models = ServiceModels(os.pathsep.join(["/nowhere", "$OF_TEST"]))
    assert models.load_service_model("own", "service-2") == {"metadata": {"serviceId": "own"}}
    assert "kinesis" in models.list_available_services("service-2")
