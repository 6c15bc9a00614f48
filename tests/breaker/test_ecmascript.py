from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaker.ecmascript import (
    WHITESPACE,
    JsonValue,
    canonical_json,
    is_number,
    join_surrogates,
    number_text,
    object_keys,
    parse_json,
    preview,
    replace_lone_surrogates,
    sort_by_units,
    string_text,
    trim,
    units_length,
    units_prefix,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
"""Text with lone surrogates too."""

NUMBERS = [
    ("0", "0"),
    ("-0", "0"),
    ("1", "1"),
    ("-1", "-1"),
    ("1.0", "1"),
    ("0.1", "0.1"),
    ("0.2", "0.2"),
    ("1e20", "100000000000000000000"),
    ("1e21", "1e+21"),
    ("999999999999999900000", "999999999999999900000"),
    ("-9.999999999999999e20", "-999999999999999900000"),
    ("123456789012345680000", "123456789012345680000"),
    ("1e-6", "0.000001"),
    ("1e-7", "1e-7"),
    ("0.00001", "0.00001"),
    ("1.5e-7", "1.5e-7"),
    ("9.5367431640625e-7", "9.5367431640625e-7"),
    ("0.000001234", "0.000001234"),
    ("0.00000012345", "1.2345e-7"),
    ("5e-324", "5e-324"),
    ("2.2250738585072014e-308", "2.2250738585072014e-308"),
    ("1.7976931348623157e308", "1.7976931348623157e+308"),
    ("1e400", "Infinity"),
    ("-1e400", "-Infinity"),
    ("9007199254740991", "9007199254740991"),
    ("9007199254740992", "9007199254740992"),
    ("9007199254740993", "9007199254740992"),
    ("12345678901234567890", "12345678901234567000"),
    ("18446744073709551616", "18446744073709552000"),
    ("4294967295", "4294967295"),
    ("100", "100"),
    ("1e2", "100"),
    ("0.1e1", "1"),
    ("123e-20", "1.23e-18"),
    ("1.7e21", "1.7e+21"),
    ("-1.5e300", "-1.5e+300"),
    ("1e16", "10000000000000000"),
    ("1e17", "100000000000000000"),
    ("1e22", "1e+22"),
    ("1e23", "1e+23"),
    ("4.35", "4.35"),
    ("2.675", "2.675"),
    ("0.30000000000000004", "0.30000000000000004"),
    ("3.0000000000000004", "3.0000000000000004"),
    ("33554432.5", "33554432.5"),
    ("123456.789e3", "123456789"),
]
"""JSON spellings and what Node 20 prints for them."""


@pytest.mark.parametrize(("spelled", "printed"), NUMBERS)
def test_numbers_are_printed_as_node_prints_them(spelled: str, printed: str) -> None:
    value = parse_json(spelled)
    assert isinstance(value, float)
    assert number_text(value) == printed


@pytest.mark.parametrize(
    ("value", "printed"),
    [(2**53 + 1, "9007199254740992"), (10**21, "1e+21"), (10**400, "Infinity"), (-(10**400), "-Infinity"), (7, "7")],
)
def test_python_integers_are_doubles_too(value: int, printed: str) -> None:
    assert number_text(value) == printed


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_reads_back_as_itself(value: float) -> None:
    printed = number_text(value)
    assert float(printed) == value
    assert not printed.endswith(".0")
    assert ("e" in printed) == (value != 0 and not 1e-6 <= abs(value) < 1e21)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_has_the_fewest_digits(value: float) -> None:
    def significant(text: str) -> str:
        return text.lstrip("-").partition("e")[0].replace(".", "").strip("0")

    assert significant(number_text(value)) == significant(repr(value))


def test_not_a_number_is_spelled_out() -> None:
    assert number_text(math.nan) == "NaN"


def test_booleans_and_numeric_texts_are_no_numbers() -> None:
    assert [is_number(value) for value in (0, 1.5, math.inf, True, False, "1", None)] == [
        True,
        True,
        True,
        False,
        False,
        False,
        False,
    ]


# -- canonical JSON ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('{"10":1,"2":2,"a":3,"02":4,"-1":5,"1.5":6}', '{"2":2,"10":1,"-1":5,"02":4,"1.5":6,"a":3}'),
        ('{"b":1,"4294967295":2,"4294967294":3}', '{"4294967294":3,"4294967295":2,"b":1}'),
        ('{"0":1,"00":2,"01":3,"":4}', '{"0":1,"":4,"00":2,"01":3}'),
        ('{"\uffff":1,"\U0001f600":2}', '{"\U0001f600":2,"\uffff":1}'),
        ('{"b":{"z":1,"y":[{"q":1,"p":2}]},"a":null}', '{"a":null,"b":{"y":[{"p":2,"q":1}],"z":1}}'),
        ('{"__proto__":1,"a":{"__proto__":{"x":1},"b":2}}', '{"a":{"b":2}}'),
        ('{"a":1,"a":2}', '{"a":2}'),
        ("[3,1,2]", "[3,1,2]"),
        ("[ 1.0 , true , false , null , 1e400 , -0 ]", "[1,true,false,null,null,0]"),
        ("{}", "{}"),
        ("[]", "[]"),
        ("[[],{}]", "[[],{}]"),
        ('"\\/\\u0022\\\\"', '"/\\"\\\\"'),
        (r'"\b\f\n\r\t\u0001\u001F"', r'"\b\f\n\r\t\u0001\u001f"'),
        (r'"\u007f\u2028\u2029\u00e9"', '"\u007f\u2028\u2029\u00e9"'),
        (r'"\ud83d\ude00"', '"\U0001f600"'),
        (r'"\uD83D"', r'"\ud83d"'),
        (r'"\udE00x\uD83D"', r'"\ude00x\ud83d"'),
        (r'{"\ud800":1}', r'{"\ud800":1}'),
    ],
)
def test_canonical_json_of_examples(value: str, written: str) -> None:
    assert canonical_json(parse_json(value)) == written


def test_surrogates_that_stand_together_are_one_character() -> None:
    assert canonical_json("\ud83d" + "\ude00") == '"\U0001f600"'


def test_tuples_are_lists_and_integers_are_doubles() -> None:
    assert canonical_json((1, (2**53 + 1, 10**400))) == "[1,[9007199254740992,null]]"


def test_a_value_inside_itself_is_named_and_a_value_met_twice_is_written_twice() -> None:
    mapping: dict[str, object] = {"a": 1}
    mapping["self"] = [mapping]
    shared = ["x"]
    assert canonical_json(mapping) == '{"a":1,"self":["[cycle]"]}'
    assert canonical_json([shared, {"again": shared}]) == '[["x"],{"again":["x"]}]'


def test_what_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(TypeError, match="not a JSON value: set"):
        canonical_json({"a": {1}})


def test_nesting_costs_no_stack() -> None:
    depth = 100_000
    nested: object = 1.0
    for level in range(depth):
        nested = [nested] if level % 2 else {"k": nested}
    written = canonical_json(nested)
    assert written.startswith('[{"k":[{"k":')
    assert len(written) == depth // 2 * len('[{"k":}]') + 1


def json_values(texts: st.SearchStrategy[str]) -> st.SearchStrategy[JsonValue]:
    scalars = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | texts
    keys = (texts | st.integers(0, 5000000000).map(str)).filter(lambda key: key != "__proto__")
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5), max_leaves=20
    )


def as_parsed(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return join_surrogates(value)
    if isinstance(value, Mapping):
        return {join_surrogates(key): as_parsed(inner) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [as_parsed(inner) for inner in value]
    return value


def shuffled(value: JsonValue, chance: random.Random) -> JsonValue:
    if isinstance(value, Mapping):
        items = [(key, shuffled(inner, chance)) for key, inner in value.items()]
        chance.shuffle(items)
        return dict(items)
    if isinstance(value, list):
        return [shuffled(inner, chance) for inner in value]
    return value


@given(json_values(ANY_TEXT))
def test_canonical_json_reads_back_as_the_same_value(value: JsonValue) -> None:
    assert parse_json(canonical_json(value)) == as_parsed(value)


@given(json_values(st.text()), st.randoms(use_true_random=False))
def test_canonical_json_knows_no_key_order(value: JsonValue, chance: random.Random) -> None:
    assert canonical_json(shuffled(value, chance)) == canonical_json(value)


@given(json_values(ANY_TEXT))
def test_canonical_json_is_well_formed_unicode(value: JsonValue) -> None:
    assert canonical_json(value).encode().decode() == canonical_json(value)


# -- parsing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "NaN",
        "Infinity",
        "-Infinity",
        "[1,]",
        "{'a':1}",
        "01",
        "1.",
        ".5",
        '"\n"',
        "\ufeff1",
        "1 2",
        "tru",
        "\v1",
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)


def test_too_deep_a_text_is_a_plain_error() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        parse_json("[" * 200_000 + "]" * 200_000)


def test_integers_are_read_as_doubles() -> None:
    assert parse_json("[1, 12345678901234567890]") == [1.0, 12345678901234567168.0]
    assert [type(item) for item in cast("list[float]", parse_json("[1]"))] == [float]


# -- texts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "character",
    [*"\t\n\v\f\r \u00a0\u1680\u2000\u2005\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"],
    ids=ascii,
)
def test_white_space_is_trimmed(character: str) -> None:
    assert trim(f"{character}a{character}b{character}") == f"a{character}b"
    assert character in WHITESPACE


@pytest.mark.parametrize("character", [*"\x1c\x1d\x1e\x1f\x85\u180e\u200b\u2060"], ids=ascii)
def test_what_only_python_or_nobody_takes_for_white_space_stays(character: str) -> None:
    assert trim(f"{character}a{character}") == f"{character}a{character}"


@given(ANY_TEXT)
def test_lengths_are_counted_in_units(text: str) -> None:
    assert units_length(text) == len(text.encode("utf-16-le", "surrogatepass")) // 2


@given(ANY_TEXT, st.integers(0, 12))
def test_a_prefix_is_cut_at_units(text: str, units: int) -> None:
    encoded = text.encode("utf-16-le", "surrogatepass")
    prefix = units_prefix(text, units).encode("utf-16-le", "surrogatepass")
    assert prefix == encoded[: 2 * units]


def test_a_prefix_may_cut_a_character_in_half() -> None:
    assert units_prefix("a\U0001f600b", 2) == "a\ud83d"
    assert units_prefix("a\U0001f600b", 3) == "a\U0001f600"


def test_a_preview_says_how_much_is_missing() -> None:
    assert preview("abcdef", 6) == "abcdef"
    assert preview("abcdefg", 3) == "abc… (+4 more chars)"
    assert preview("\U0001f600\U0001f600", 3) == "\U0001f600\ud83d… (+1 more chars)"


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    assert replace_lone_surrogates("a\ud83d\ude00\ud83db") == "a\U0001f600\ufffdb"
    assert join_surrogates("\ud83d" + "\ude00" + "\ude00") == "\U0001f600\ude00"


@given(st.lists(ANY_TEXT))
def test_texts_sort_by_units(texts: list[str]) -> None:
    def units(text: str) -> list[int]:
        encoded = text.encode("utf-16-be", "surrogatepass")
        return [int.from_bytes(encoded[at : at + 2], "big") for at in range(0, len(encoded), 2)]

    assert sort_by_units(texts) == sorted(texts, key=units)


def test_an_astral_character_sorts_before_the_last_of_the_plane() -> None:
    assert sort_by_units(["\uffff", "\U0001f600", "a"]) == ["a", "\U0001f600", "\uffff"]


def test_index_keys_come_first_in_numeric_order() -> None:
    keys = ["b", "10", "9", "-1", "4294967295", "4294967294", "01", "a", "٣", "1e3"]
    assert object_keys(keys) == ["9", "10", "4294967294", "b", "-1", "4294967295", "01", "a", "٣", "1e3"]


VALUES: list[tuple[object, str]] = [
    (None, "null"),
    (True, "true"),
    (False, "false"),
    (1.0, "1"),
    (1e21, "1e+21"),
    (math.nan, "NaN"),
    ("x", "x"),
    (list[object](), ""),
    ([1.0, None, "a", [True, [None, list[object]()]], {"a": 1}], "1,,a,true,,,[object Object]"),
    ([list[object](), [1]], ",1"),
    ({"a": 1}, "[object Object]"),
]


@pytest.mark.parametrize(("value", "text"), VALUES, ids=repr)
def test_values_turn_into_text_as_in_javascript(value: object, text: str) -> None:
    assert string_text(value) == text


def test_deep_and_cyclic_lists_turn_into_text() -> None:
    deep: list[object] = ["x"]
    for _ in range(50_000):
        deep = [deep]
    cyclic: list[object] = [1, 2]
    cyclic.append(cyclic)
    assert string_text(deep) == "x"
    assert string_text(cyclic) == "1,2,"
