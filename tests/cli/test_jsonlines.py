"""A document is printed as the standard encoder indents it, whatever is in it."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cli.jsonlines import print_json

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters())
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


@given(VALUES)
@example({"empty": [{}, []], "number": -0.0, "large": 2**80, "small": 1e-7})
@example({"half a character": "\ud800", "whole": "😀", "escapes": '"\\\n\x00\x7f\u2028</'})
@example({"no number": [float("nan"), float("inf")]})
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_document_is_indented_as_the_standard_encoder_does(capsys: pytest.CaptureFixture[str], value: object) -> None:
    print_json(value)
    assert capsys.readouterr().out == json.dumps(value, indent=2) + "\n"


def test_a_document_may_be_deep(capsys: pytest.CaptureFixture[str]) -> None:
    value: object = 0
    for _ in range(400):
        value = [value]
    print_json(value)
    assert json.loads(capsys.readouterr().out) == value
