"""Files of the Java daemon: its conformance cases for settings, its sample, and what it hides."""

from __future__ import annotations

import re
from importlib.metadata import files
from pathlib import Path

import pytest

from kainite.settings import Examination, MetricsLevel, Retrieval, examine

MINIMAL = {
    "applicationName": "app",
    "streamName": "orders",
    "executableName": "python child.py",
    "AwsCredentialsProvider": "DefaultCredentialsProvider",
}
ARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/from-arn"
CONSUMER = ARN + "/consumer/reader:1700000000"
SAMPLE = Path(str(next(file for file in files("amazon_kclpy") or () if file.name == "sample.properties").locate()))


def read(folder: Path, properties: dict[str, str]) -> Examination:
    path = folder / "app.properties"
    lines = (f"{key} = {value}\n" for key, value in (MINIMAL | properties).items())
    path.write_text("".join(lines).replace("\\", "\\\\"), encoding="latin-1")
    return examine(path, environment={})


def problems(folder: Path, **properties: str) -> str:
    return "; ".join(read(folder, properties).problems)


def warnings(folder: Path, properties: dict[str, str]) -> str:
    found = read(folder, properties)
    assert not found.problems
    return "; ".join(found.warnings)


def test_15_the_stream_is_named_by_its_name_or_its_arn(tmp_path: Path) -> None:
    assert read(tmp_path, {"streamName": "s"}).settings_or_raise().stream.name == "s"
    assert read(tmp_path, {"streamName": " ", "streamArn": ARN}).settings_or_raise().stream.name == "from-arn"
    assert read(tmp_path, {"streamArn": ARN}).settings_or_raise().stream.name == "from-arn"
    assert "streamName is missing" in problems(tmp_path, streamName="")
    for malformed in (ARN.replace("kinesis", "dynamodb"), ARN.replace("123456789012", "12"), ARN[:-8], "from-arn"):
        assert "streamArn: must be a stream's ARN" in problems(tmp_path, streamArn=malformed)


def test_16_an_unknown_key_is_ignored(tmp_path: Path) -> None:
    found = read(tmp_path, {"randomProperty": "x"})

    assert not found.problems
    assert [entry.key for entry in found.unknown] == ["randomProperty"]


def test_17_a_bad_number_is_an_error_where_java_takes_the_default(tmp_path: Path) -> None:
    assert "failoverTimeMillis: must be milliseconds" in problems(tmp_path, failoverTimeMillis="soon")
    assert "maxRecords: must be a whole number" in problems(tmp_path, maxRecords="-1")
    assert "retrievalMode: must be one of DEFAULT, POLLING, FANOUT" in problems(tmp_path, retrievalMode="PUSH")
    assert "metricsLevel: must be one of" in problems(tmp_path, metricsLevel="ALL")
    assert "clientVersionConfig: must be one of" in problems(tmp_path, clientVersionConfig="3")
    assert "coordinatorStateBillingMode" in problems(tmp_path, coordinatorStateBillingMode="FREE")


def test_18_without_credentials_boto3_looks_for_some_where_java_does_not_start(tmp_path: Path) -> None:
    found = read(tmp_path, {"AwsCredentialsProvider": ""})

    assert not found.problems
    assert any("Java would not start" in note for note in found.notes)


def test_19_one_unknown_provider_is_an_error_where_java_takes_the_rest(tmp_path: Path) -> None:
    chain = "DefaultCredentialsProvider,com.example.Unknown"

    assert "'Unknown' is no credentials provider" in problems(tmp_path, AwsCredentialsProvider=chain)
    assert "SystemPropertyCredentialsProvider: skipped" in warnings(
        tmp_path, {"AwsCredentialsProvider": "SystemPropertyCredentialsProvider,DefaultCredentialsProvider"}
    )


def test_20_the_default_mode_says_what_java_would_do(tmp_path: Path) -> None:
    plain, polling = read(tmp_path, {}), read(tmp_path, {"maxRecords": "10"})

    assert plain.settings_or_raise().stream.retrieval is Retrieval.DEFAULT
    assert any("DEFAULT is fan-out with kainite[fanout], as in Java" in note for note in plain.notes)
    assert not any("fan-out" in note for note in polling.notes)


def test_keys_for_credentials_are_read_in_any_case(tmp_path: Path) -> None:
    found = read(tmp_path, {"awscredentialsproviderDYNAMODB": "ProfileCredentialsProvider|tables"})

    assert found.unknown == ()
    assert found.settings_or_raise().aws.dynamodb.credentials[0].arguments == ("tables",)


def test_nested_settings_reach_their_client(tmp_path: Path) -> None:
    aws = (
        read(
            tmp_path,
            {
                "kinesisClient.endpointOverride": "http://localhost:1",
                "dynamoDbClient.region": "eu-north-1",
                "cloudWatchClient.endpointOverride": "http://localhost:2",
                "cloudWatchClient.fipsEnabled": "true",
            },
        )
        .settings_or_raise()
        .aws
    )

    assert (aws.kinesis_endpoint, aws.cloudwatch_endpoint) == ("http://localhost:1", "http://localhost:2")
    assert (aws.dynamodb.region, aws.cloudwatch.fips) == ("eu-north-1", True)
    assert "did you mean kinesisClient.region?" in problems(tmp_path, **{"kinesisClient.regoin": "x"})
    assert "no such setting" in problems(tmp_path, **{"cloudWatchClient.accountIdEndpointMode": "required"})


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        ({}, Retrieval.DEFAULT),
        ({"maxRecords": "7"}, Retrieval.POLLING),
        ({"pollingConfig.idleTimeBetweenReadsInMillis": "700", "retrievalMode": "default"}, Retrieval.POLLING),
        ({"maxRecords": "7", "retrievalMode": "FANOUT"}, Retrieval.FANOUT),
    ],
)
def test_a_polling_key_makes_default_polling(tmp_path: Path, lines: dict[str, str], mode: Retrieval) -> None:
    assert read(tmp_path, lines).settings_or_raise().stream.retrieval is mode


def test_nested_spellings_of_polling_and_fan_out_are_the_same_keys(tmp_path: Path) -> None:
    stream = (
        read(
            tmp_path,
            {"pollingConfig.maxRecords": "7", "retrievalMode": "fanout", "fanoutConfig.consumerArn": CONSUMER},
        )
        .settings_or_raise()
        .stream
    )

    assert (stream.max_records, stream.retrieval, stream.consumer_arn) == (7, Retrieval.FANOUT, CONSUMER)


@pytest.mark.parametrize(
    ("properties", "says"),
    [
        ({"shutdownGraceMillis": "0"}, "no time"),
        ({"retrievalMode": "FANOUT", "pollingConfig.maxRecords": "5"}, "no effect: maxRecords"),
        ({"fanoutConfig.consumerName": "c"}, "no effect: fanoutConfig.consumerName"),
        ({"streamArn": ARN}, "streamArn wins"),
        ({"streamArn": ARN, "streamName": "from-arn", "regionName": "us-east-1"}, "the ARN's region eu-west-1"),
        ({"executableName": "python 'my child.py'"}, "Java splits at spaces"),
        ({"executableName": r"python C:\child.py"}, "Java splits at spaces"),
        ({"cleanupLeasesUponShardCompletion": "false"}, "Java overlooks it"),
        ({"maxActiveThreads": "many"}, "maxActiveThreads: must be a whole number"),
        ({"staleWorkerMetricsEntryCleanupDuration": "1 day"}, "must be a duration"),
        ({"AwsCredentialsProvider": "StaticCredentialsProvider|a|b"}, "the secret key stands in the settings"),
    ],
)
def test_what_is_allowed_and_surprising_is_a_warning(tmp_path: Path, properties: dict[str, str], says: str) -> None:
    assert says in warnings(tmp_path, properties)
    assert read(tmp_path, properties).settings_or_raise().warnings


def test_a_plain_file_brings_no_warning(tmp_path: Path) -> None:
    plain = {
        "streamArn": ARN,
        "streamName": "from-arn",
        "executableName": "python   child.py  -v",
        "maxActiveThreads": "0",
    }

    assert warnings(tmp_path, plain) == ""


@pytest.mark.parametrize(
    ("key", "text", "says"),
    [
        ("initialPositionInStream", "AT_TIMESTAMP", "initialPositionInStreamExtended"),
        ("initialPositionInStreamExtended", "1700000000000", "to 2147483647"),
        ("initialPositionInStreamExtended", "1.5", "whole seconds"),
        ("metricsEnabledDimensions", "Shard", "ShardId"),
        ("fanoutConfig.consumerArn", ARN, "stream consumer's ARN"),
    ],
)
def test_what_java_hides_is_an_error_that_says_what_is_allowed(tmp_path: Path, key: str, text: str, says: str) -> None:
    assert says in problems(tmp_path, **{key: text})


def test_a_key_that_disables_switches_its_field_off(tmp_path: Path) -> None:
    assert not read(tmp_path, {"disableWorkerMetrics": "true"}).settings_or_raise().leases.report_worker_metrics
    assert read(tmp_path, {"disableWorkerMetrics": "false"}).settings_or_raise().leases.report_worker_metrics


def test_the_sample_of_the_python_library_loads_as_it_is() -> None:
    found = examine(SAMPLE, environment={})

    assert found.problems == ()
    assert found.unknown == ()
    assert found.settings_or_raise().stream.arn == "arn:aws:kinesis:us-east-5:000000000000:stream/kclpysample"


def test_the_sample_loads_with_every_key_that_it_has_in_comments(tmp_path: Path) -> None:
    lines = SAMPLE.read_text().splitlines()
    commented = [match.groups() for line in lines if (match := re.fullmatch(r"#\s*([a-z]\w+)\s*=\s*(\S*)", line))]
    filled = {key: text or _any_value(key) for key, text in commented}
    path = tmp_path / "all.properties"
    path.write_text("\n".join([*lines, *(f"{key} = {text}" for key, text in filled.items())]))
    found = examine(path, environment={})

    assert len(filled) > 40
    assert found.problems == ()
    assert found.unknown == ()
    assert found.settings_or_raise().metrics.level in (None, *MetricsLevel)


def _any_value(key: str) -> str:
    """Returns a text that is allowed for a key without a value in the sample."""
    by_end = {
        "clientVersionConfig": "CLIENT_VERSION_CONFIG_COMPATIBLE_WITH_2X",
        "BillingMode": "PROVISIONED",
        "Tags": "team=data,stage=test",
        "TableName": "PythonKCLSample-table",
        "Duration": "PT15M",
        "Alpha": "0.5",
        "Millis": "2000",
    }
    if key.endswith("Enabled") or key.startswith(("is", "disable", "allow")):
        return "true"
    return next((value for end, value in by_end.items() if key.endswith(end)), "7")
