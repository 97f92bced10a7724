from __future__ import annotations

import pytest

from kainite.child.json_lines.messages import KCL, V0
from kainite.child.json_lines.misread import of_another_form, why_unreadable


@pytest.mark.parametrize(
    ("line", "own", "said"),
    [
        ('{"action":"checkpoint","checkpoint":"495"}', KCL.sequence, "set childProtocol=json-lines-v0"),
        ('{"action":"checkpoint","checkpoint":null}', KCL.sequence, "set childProtocol=json-lines-v0"),
        ('{"action":"checkpoint","sequenceNumber":"495"}', V0.sequence, "set childProtocol=json-lines"),
    ],
)
def test_a_checkpoint_request_of_the_other_form_is_recognised(line: str, own: str, said: str) -> None:
    found = of_another_form(line, own)
    assert found is not None
    assert found.endswith(said)


@pytest.mark.parametrize(
    "line", ['{"action":"checkpoint"}', '{"action":"status","checkpoint":1}', '"checkpoint"', "{", "checkpoint"]
)
def test_any_other_line_is_not(line: str) -> None:
    assert of_another_form(line, KCL.sequence) is None
    assert of_another_form(line, V0.sequence) is None


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (['\ufeff{"action":"status"}'], "a byte-order mark"),
        (["{", '  "action": "status"', "}"], "write each JSON object on one line"),
        (["ready", "still here"], "it wrote 'ready' and 1 more"),
        (["{"], "it wrote '{'"),
    ],
)
def test_what_is_wrong_with_lines_is_guessed(lines: list[str], said: str) -> None:
    assert said in why_unreadable(lines)
