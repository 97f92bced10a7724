"""Templates of a run instruction: known placeholders are filled, unknown ones are refused."""

from __future__ import annotations

import pytest

from kainite.settings.placeholders import PLACEHOLDERS, check_template, filled

VALUES = {name: name.upper() for name in PLACEHOLDERS}


@pytest.mark.parametrize("name", PLACEHOLDERS)
def test_each_placeholder_is_known_and_filled(name: str) -> None:
    template = f"-x={{{name}}};{{{name}}}"
    check_template(template)
    assert filled(template, VALUES) == f"-x={name.upper()};{name.upper()}"


@pytest.mark.parametrize("template", ["{eol}", "{eom}{eol}", "{batchsize}", "{eof}"])
def test_an_unknown_placeholder_is_refused_and_the_known_ones_are_named(template: str) -> None:
    with pytest.raises(ValueError, match=r"is none of \{eom\}, \{eop\}"):
        check_template(template)


@pytest.mark.parametrize("template", ["", "plain", "{}", "{EOM}", "${1}", '{"a": {}} {A}'])
def test_other_braces_stay_as_they_are(template: str) -> None:
    check_template(template)
    assert filled(template, VALUES) == template
