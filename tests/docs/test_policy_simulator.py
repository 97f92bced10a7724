"""The policy simulator decides as AWS documents it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.policy_simulator import AwsRequest, allows, grains, like, request

KEYS = st.sampled_from(["0#H", "0#L", "0:outcomes#L", "0#L#3", "0#Q", "a", ""])
PATTERNS = st.sampled_from(["*", "*#H", "*#L*", "0#?", "a", "0:outcomes#L", "?"])
ACTIONS = st.sampled_from(["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:Query"])
OPERATORS = st.sampled_from(["ForAllValues:StringLike", "ForAnyValue:StringLike", "ForAllValues:StringEquals"])
TABLE = "arn:aws:dynamodb:eu-central-1:1:table/app-log"


def policy(effect: str, action: Any, condition: Mapping[str, Any] | None = None, resource: str = TABLE) -> Any:
    statement = {"Effect": effect, "Action": action, "Resource": resource}
    return {"Statement": [statement | ({"Condition": condition} if condition else {})]}


def keyed(operator: str, *values: str) -> Mapping[str, Any]:
    return {operator: {"dynamodb:LeadingKeys": list(values)}}


CONDITIONS = st.builds(lambda operator, values: keyed(operator, *values), OPERATORS, st.lists(PATTERNS, min_size=1))
POLICIES = st.lists(
    st.builds(policy, st.sampled_from(["Allow", "Deny"]), st.lists(ACTIONS, min_size=1), st.none() | CONDITIONS)
)
REQUESTS = st.builds(
    lambda action, keys: request(action, TABLE, dynamodb_LeadingKeys=keys), ACTIONS, st.lists(KEYS, min_size=1)
)


@given(POLICIES, REQUESTS, st.randoms(use_true_random=False))
def test_the_order_of_policies_does_not_matter(policies: list[Any], asked: AwsRequest, chance: Any) -> None:
    before = allows(policies, asked)
    chance.shuffle(policies)
    assert allows(policies, asked) == before


@given(POLICIES, REQUESTS)
def test_a_deny_wins_and_nothing_is_denied(policies: list[Any], asked: AwsRequest) -> None:
    assert not allows([*policies, policy("Deny", "*", resource="*")], asked)
    assert not allows([each for each in policies if each["Statement"][0]["Effect"] == "Deny"], asked)


@given(POLICIES, REQUESTS)
def test_another_allow_takes_nothing_away_and_another_deny_gives_nothing(
    policies: list[Any], asked: AwsRequest
) -> None:
    now = allows(policies, asked)
    assert allows([*policies, policy("Allow", "dynamodb:Get*")], asked) >= now
    assert allows([*policies, policy("Deny", "dynamodb:Get*")], asked) <= now


@given(st.builds(policy, st.just("Allow"), st.lists(ACTIONS, min_size=1), CONDITIONS), ACTIONS, KEYS)
def test_grains_together_allow_what_the_policy_allows(document: Any, action: str, key: str) -> None:
    asked = request(action, TABLE, dynamodb_LeadingKeys=[key])
    assert allows([document], asked) == any(allows([grain], asked) for grain in grains(document))


@given(st.text("ab*?[.\n", max_size=6), st.text("ab[.\n", max_size=6))
def test_wildcards_match_as_their_definition_says(pattern: str, value: str) -> None:
    def matches(pattern: str, value: str) -> bool:
        if not pattern:
            return not value
        if pattern[0] == "*":
            return matches(pattern[1:], value) or (bool(value) and matches(pattern, value[1:]))
        return bool(value) and pattern[0] in ("?", value[0]) and matches(pattern[1:], value[1:])

    assert like(value, pattern) == matches(pattern, value)


@pytest.mark.parametrize(
    ("condition", "keys", "allowed"),
    [
        (keyed("ForAllValues:StringLike", "*#H"), ["0#H"], True),
        (keyed("ForAllValues:StringLike", "*#H"), ["0#H", "0#L"], False),
        (keyed("ForAnyValue:StringLike", "*#H"), ["0#H", "0#L"], True),
        (keyed("ForAllValues:StringEquals", "*#H"), ["0#H"], False),
        (keyed("ForAllValues:StringNotEquals", "0#H"), ["0#L"], True),
        (keyed("ForAllValues:StringNotLike", "*#H"), ["0#H"], False),
        (keyed("StringEquals", "a"), ["a"], True),
        # A request without the key: AWS documents that ForAllValues holds then, and ForAnyValue does not.
        (keyed("ForAllValues:StringLike", "*#H"), None, True),
        (keyed("ForAnyValue:StringLike", "*#H"), None, False),
        (keyed("StringLike", "*"), None, False),
        (keyed("StringNotLike", "a"), None, True),
        (keyed("StringEqualsIfExists", "a"), None, True),
        (keyed("Null", "false"), None, False),
        (keyed("Null", "false"), ["a"], True),
    ],
)
def test_conditions(condition: Mapping[str, Any], keys: list[str] | None, allowed: bool) -> None:
    context = {} if keys is None else {"dynamodb_LeadingKeys": keys}
    asked = request("dynamodb:GetItem", TABLE, **context)
    assert allows([policy("Allow", "dynamodb:getitem", condition)], asked) == allowed


@pytest.mark.parametrize(
    "document",
    [
        policy("Allow", "*", keyed("ArnLike", "a")),
        policy("Allow", "*", keyed("ForSomeValues:StringLike", "a")),
        policy("Allow", "*", keyed("StringEquals", "a")),
        policy("Allow", "*", keyed("ForAllValues:StringLike", "${aws:userid}")),
        policy("Perhaps", "*"),
        {"Statement": [{"Effect": "Allow", "NotAction": "*", "Action": "*", "Resource": "*"}]},
    ],
)
def test_what_is_not_evaluated_is_an_error(document: Any) -> None:
    with pytest.raises(ValueError, match=r"not evaluated here|no effect|compares one value"):
        allows([document], request("dynamodb:GetItem", TABLE, dynamodb_LeadingKeys=["a", "b"]))
