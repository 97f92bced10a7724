from __future__ import annotations

from typing import Any

import pytest

from kainite.settings.credentials import CredentialsSource, Provider
from kainite.settings.loading.overrides import GivenText
from kainite.settings.loading.surprises import notes, problem_of, warnings
from kainite.settings.sections.child import ChildProtocol
from kainite.settings.sections.stream import Retrieval

Values = dict[tuple[str, str], Any]


def given(**texts: str) -> dict[str, GivenText]:
    """Returns the settings of a file with these texts, by key."""
    return {key: GivenText(text, key, "file") for key, text in texts.items()}


ARN = "arn:aws:kinesis:eu-west-1:123456789012:stream/orders"
EXPLAINED: tuple[dict[str, GivenText], Values] = (
    given(AwsCredentialsProvider="DefaultCredentialsProvider"),
    {("stream", "retrieval"): Retrieval.POLLING},
)
"""Settings without any note."""


def chain(*sources: CredentialsSource) -> tuple[Provider, ...]:
    return tuple(Provider(f"{source.name}Provider", source) for source in sources)


@pytest.mark.parametrize(
    ("texts", "values", "begins"),
    [
        ({}, {("child", "shutdown_grace"): 0}, "shutdownGraceMillis: 0 gives children no time"),
        (
            {"maxRecords": "10"},
            {("stream", "retrieval"): Retrieval.FANOUT},
            "retrievalMode: FANOUT does not poll, so these have no effect: maxRecords",
        ),
        (
            {"fanoutConfig.consumerName": "x", "fanoutConfig.consumerArn": "y"},
            {},
            "retrievalMode: DEFAULT polls without kainite[fanout], and then these have no effect: fanoutConfig.consu",
        ),
        (
            {},
            {("stream", "arn"): ARN, ("stream", "name"): "others"},
            "streamName: streamArn wins, and names the stream orders",
        ),
        (
            {},
            {("stream", "arn"): ARN, ("aws", "region"): "us-east-1"},
            "streamArn: Kinesis is asked in the ARN's region eu-west-1",
        ),
        (
            {},
            {("stream", "arn"): ARN, ("aws.kinesis", "region"): "us-east-1", ("aws", "region"): "eu-west-1"},
            "streamArn: Kinesis is asked in the ARN's region eu-west-1",
        ),
        (
            {"executableName": "python 'my child.py'"},
            {("child", "command"): ("python", "my child.py")},
            "executableName: quotes and backslashes",
        ),
        ({}, {("aws", "credentials"): chain(CredentialsSource.JVM)}, "JVMProvider: skipped, a process without a JVM"),
        (
            {},
            {("aws.dynamodb", "credentials"): chain(CredentialsSource.STATIC)},
            "STATICProvider: the secret key stands in",
        ),
        ({}, {("leases", "cleanup_completed"): False}, "cleanupLeasesUponShardCompletion: false keeps"),
        ({"maxActiveThreads": "-1"}, {}, "maxActiveThreads: "),
    ],
)
def test_a_setting_that_may_surprise_is_warned_of_once(texts: dict[str, str], values: Values, begins: str) -> None:
    (line,) = warnings(given(**texts), values)
    assert line.startswith(begins)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ({}, {}),
        ({}, {("child", "shutdown_grace"): 5}),
        ({"maxRecords": "10"}, {("stream", "retrieval"): Retrieval.POLLING}),
        ({"fanoutConfig.consumerName": "x"}, {("stream", "retrieval"): Retrieval.FANOUT}),
        ({}, {("stream", "arn"): ARN}),
        ({}, {("stream", "arn"): ARN, ("stream", "name"): "orders", ("aws", "region"): "eu-west-1"}),
        ({}, {("stream", "arn"): ARN, ("aws.kinesis", "region"): "eu-west-1", ("aws", "region"): "us-east-1"}),
        ({"executableName": "python  child.py"}, {("child", "command"): ("python", "child.py")}),
        ({"executableName": "python 'child"}, {}),  # an error already
        ({}, {("aws", "credentials"): chain(CredentialsSource.DEFAULT, CredentialsSource.PROFILE)}),
        ({}, {("leases", "cleanup_completed"): True}),
        ({"maxActiveThreads": "3"}, {}),
    ],
)
def test_a_setting_that_means_what_java_makes_of_it_is_no_surprise(texts: dict[str, str], values: Values) -> None:
    assert warnings(given(**texts), values) == ()


@pytest.mark.parametrize(
    ("texts", "values", "begins"),
    [
        ({}, {("stream", "idle_between_reads"): 0.1}, "idleTimeBetweenReadsInMillis: below 200"),
        ({}, {("stream", "retrieval"): Retrieval.FANOUT}, "retrievalMode: FANOUT speaks HTTP/2 with kainite[fanout]"),
        ({}, {("stream", "retrieval"): Retrieval.DEFAULT}, "retrievalMode: DEFAULT is fan-out with kainite[fanout]"),
        ({}, {("stream", "skip_sync_if_leases"): True}, "skipShardSyncAtWorkerInitializationIfLeasesExist: true"),
        ({}, {("child", "protocol"): ChildProtocol.MARKERS}, "timeoutInSeconds: not set"),
    ],
)
def test_a_setting_that_is_worth_knowing_about_is_noted_once(
    texts: dict[str, str], values: Values, begins: str
) -> None:
    known, plain = EXPLAINED
    (line,) = notes(known | given(**texts), plain | values)
    assert line.startswith(begins)


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        ({}, {}),
        ({}, {("stream", "idle_between_reads"): 0.2}),
        ({"maxRecords": "10"}, {("stream", "retrieval"): Retrieval.DEFAULT}),
        ({}, {("stream", "skip_sync_if_leases"): False}),
        ({}, {("child", "protocol"): ChildProtocol.MARKERS, ("child", "reply_timeout"): 5}),
    ],
)
def test_plain_settings_have_no_note(texts: dict[str, str], values: Values) -> None:
    known, plain = EXPLAINED
    assert notes(known | given(**texts), plain | values) == ()


def test_boto3s_default_chain_is_noted_where_no_provider_is_set() -> None:
    _, plain = EXPLAINED
    (line,) = notes({}, plain)
    assert line.startswith("AwsCredentialsProvider: not set")


def test_the_problem_of_a_text_is_its_parsers() -> None:
    def parse(text: str, folder: object) -> int:
        return int(text)

    assert problem_of(parse, "7") is None
    assert problem_of(parse, "x") == "invalid literal for int() with base 10: 'x'"
