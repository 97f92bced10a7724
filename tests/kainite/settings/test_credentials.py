"""Credential chains as text: names of both SDKs, arguments, and nothing secret in what is shown."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kainite.settings.credentials import NAMES, CredentialsSource, Provider, endpoint_of, parse_chain, show_chain

ROLE = "StsAssumeRoleCredentialsProvider|arn:aws:iam::123456789012:role/r|session"
WORD = st.text(st.characters(exclude_characters=",|=^", exclude_categories=["Cs", "Z", "C"]), min_size=1)
PACKAGES = [
    "",
    "software.amazon.awssdk.auth.credentials.",
    "com.amazonaws.auth.",
    "software.amazon.kinesis.multilang.auth.",
]
WITH_ARGUMENTS = (CredentialsSource.STATIC, CredentialsSource.ASSUME_ROLE)
SIMPLE = [name for name, source in NAMES.items() if source not in WITH_ARGUMENTS]


@given(st.lists(st.tuples(st.sampled_from(PACKAGES), st.sampled_from(SIMPLE)), min_size=1, max_size=4))
def test_a_chain_keeps_its_order_and_loses_its_packages(written: list[tuple[str, str]]) -> None:
    chain = parse_chain(" , ".join(package + name for package, name in written))

    assert [provider.name for provider in chain] == [name for _, name in written]
    assert [provider.source for provider in chain] == [NAMES[name] for _, name in written]
    assert parse_chain(show_chain(chain)) == chain


@given(WORD, WORD, st.dictionaries(st.sampled_from(["endpointRegion", "externalId"]), WORD))
def test_a_role_keeps_its_arguments_in_order_and_by_name(role: str, session: str, named: dict[str, str]) -> None:
    pairs = [f"{key}={value}" for key, value in named.items()]
    text = "|".join(["StsAssumeRoleCredentialsProvider", role, session, *pairs])
    (provider,) = parse_chain(text)

    assert provider.arguments == (role, session)
    assert {key: provider.get(key) for key in named} == named


@given(st.text(max_size=60))
def test_any_text_is_a_chain_or_refused(text: str) -> None:
    try:
        chain = parse_chain(text)
    except ValueError:
        return
    assert chain


def test_an_endpoint_brings_its_region() -> None:
    (own,) = parse_chain(f"{ROLE}|endpoint=https://sts.example.com^eu-west-1")
    (region,) = parse_chain(f"{ROLE}|endpointRegion=us-east-2")
    (neither,) = parse_chain(ROLE)

    assert endpoint_of(own) == ("https://sts.example.com", "eu-west-1")
    assert endpoint_of(region) == (None, "us-east-2")
    assert endpoint_of(neither) == (None, None)


def test_secrets_are_neither_shown_nor_in_repr() -> None:
    chain = parse_chain(f"StaticCredentialsProvider|AKIAGEHEIM|geheim,{ROLE}|externalId=geheim")

    assert chain[0].arguments == ("AKIAGEHEIM", "geheim")
    assert show_chain(chain) == f"StaticCredentialsProvider|***|***,{ROLE}|externalId=***"
    assert "geheim" not in repr(chain).lower()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("DefaultCredentialsProvder", "did you mean DefaultCredentialsProvider"),
        ("com.example.OwnProvider", "known are"),
        (",", "names no credentials provider"),
        ("StaticCredentialsProvider|geheim", "KEY-ID|SECRET"),
        ("DefaultCredentialsProvider|x", "no argument"),
        ("DefaultCredentialsProvider|externalId=x", "takes no externalId"),
        ("StsAssumeRoleCredentialsProvider|arn", "ROLE-ARN|SESSION"),
        (f"{ROLE}|endpoint=https://sts.example.com", "URL^REGION"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(text: str, says: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_chain(text)
    assert says in str(raised.value)
    assert "geheim" not in str(raised.value)


def test_a_profile_may_be_named() -> None:
    assert parse_chain("ProfileCredentialsProvider|prod")[0] == Provider(
        "ProfileCredentialsProvider", CredentialsSource.PROFILE, ("prod",)
    )
