from pathlib import Path

import pytest

from analysis.labels import LabelConflict, LabelError, LabelRule, LabelRules, parse_label, read_labels

PATH = "/data/runs/--p--/session-7/session.v4.jsonl.zstd"


@pytest.fixture
def labels_file(tmp_path: Path) -> Path:
    return tmp_path / "labels.csv"


def pairs(rules: list[LabelRule]) -> list[tuple[str, str, str]]:
    return [(rule.glob, rule.label, rule.reason) for rule in rules]


@pytest.mark.parametrize(
    "glob",
    [
        "session-7",
        "session-?",
        "s*7",
        "session-[0-9]",
        "session-[!0]",
        "--p--",
        "--p--/session-7",
        "--p--/*",
        "runs/",
        "/data/runs",
        "/data/*.zstd",
        "*.v4.jsonl.zstd",
        "session.v4.jsonl.zstd",
        PATH,
    ],
)
def test_a_glob_speaks_of_the_id_the_path_or_a_part_of_it(glob: str) -> None:
    assert parse_label(f"good={glob}").matches("session-7", PATH)


@pytest.mark.parametrize("glob", ["session", "session-77", "SESSION-7", "ession-7", "p", "uns", "/session-7", "x/*"])
def test_a_glob_must_match_whole_names(glob: str) -> None:
    assert not parse_label(f"good={glob}").matches("session-7", PATH)


def test_a_path_of_another_system_matches_too() -> None:
    assert parse_label("stuck=--C-p--/session-7").matches(None, "C:\\runs\\--C-p--\\session-7\\session.jsonl")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("good", "--label good: must be NAME=GLOB"),
        ("better=x", "unknown label 'better'; known: good, stuck, unknown"),
        ("=x", "unknown label ''"),
        ("good=", "an empty session or glob"),
        ("good=a[b", "`\\[` is never closed"),
        ("good=a[]", "`\\[` is never closed"),
        ("good=a[!]", "`\\[` is never closed"),
        ("good=[a]b[c", "`\\[` is never closed"),
    ],
)
def test_a_bad_label_is_told(text: str, why: str) -> None:
    with pytest.raises(LabelError, match=why):
        parse_label(text)


@pytest.mark.parametrize(
    ("glob", "name"),
    [("a[[]b", "a[b"), ("[[]", "["), ("[]]", "]"), ("[!]]x", "ax"), ("a]b", "a]b"), ("[a-c][]x]", "b]")],
)
def test_brackets_can_be_meant(glob: str, name: str) -> None:
    assert parse_label(f"good={glob}").matches(name, "elsewhere")


def test_a_glob_may_hold_an_equals_sign() -> None:
    assert parse_label("good=a=b").glob == "a=b"


def test_rules_that_agree_are_no_conflict_and_rules_that_differ_are() -> None:
    rules = LabelRules([parse_label("good=session-*"), parse_label("good=*7"), parse_label("stuck=session-8")])
    assert rules.label_of("session-7", PATH) == "good"
    assert [rule.glob for rule in rules.unused()] == ["session-8"]
    with pytest.raises(LabelConflict, match=r"two labels for session session-8: good \(.*\) and stuck \(.*\)"):
        rules.label_of("session-8", "x")
    assert rules.unused() == []


def test_without_a_rule_nothing_is_known() -> None:
    assert LabelRules().label_of("session-7", PATH) == "unknown"


def test_a_csv_with_headings_remarks_and_reasons(labels_file: Path) -> None:
    labels_file.write_text(
        "\ufeffsession,label,reason\n# mine\n\nsession-7,good,it ended well\n"
        '"--p--/a,b",stuck,"said ""no"", twice"\r\nsession-9 , unknown\n',
        encoding="utf-8",
    )
    assert pairs(read_labels(labels_file)) == [
        ("session-7", "good", "it ended well"),
        ("--p--/a,b", "stuck", 'said "no", twice'),
        ("session-9", "unknown", ""),
    ]


def test_a_csv_without_headings_begins_at_once(labels_file: Path) -> None:
    labels_file.write_text("session-7,good\n")
    assert pairs(read_labels(labels_file)) == [("session-7", "good", "")]


@pytest.mark.parametrize("separator", ["\u2028", "\x0b", "\x85", "\x1c"])
def test_odd_separators_in_a_csv_are_text(labels_file: Path, separator: str) -> None:
    labels_file.write_text(f"a{separator}b,good\n", encoding="utf-8")
    assert pairs(read_labels(labels_file)) == [(f"a{separator}b", "good", "")]


def test_a_quoted_reason_may_go_over_lines(labels_file: Path) -> None:
    labels_file.write_text('a,good,"first\nsecond"\nb,stuck,x\n')
    assert pairs(read_labels(labels_file)) == [("a", "good", "first\nsecond"), ("b", "stuck", "x")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("session-7\n", ":1: needs a session and a label"),
        ("session,label\na,good\nb,bad\n", ":3: unknown label 'bad'"),
        ("a,good\n,stuck\n", ":2: an empty session or glob"),
        ("a[,good\n", ":1: bad glob"),
        ('"a,good\n', ":1: "),
    ],
)
def test_a_bad_line_of_a_csv_is_told_with_its_number(labels_file: Path, text: str, why: str) -> None:
    labels_file.write_text(text)
    with pytest.raises(LabelError) as told:
        read_labels(labels_file)
    assert str(told.value).startswith(f"{labels_file}{why}")


def test_toml_tables(tmp_path: Path) -> None:
    path = tmp_path / "labels.toml"
    path.write_text(
        '[[label]]\nsession = "a*"\nlabel = "good"\nreason = "r"\n[[label]]\nsession = "b"\nlabel = "stuck"\n'
    )
    assert pairs(read_labels(path)) == [("a*", "good", "r"), ("b", "stuck", "")]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[[label]\n", ":1: "),
        ("x = 1\n", r"has no \[\[label\]\] tables"),
        ('label = "good"\n', r"has no \[\[label\]\] tables"),
        ('[[label]]\nsession = "a"\nlabel = 5\n', r"\[\[label\]\] number 1: session, label and reason must be text"),
        ('[[label]]\nsession = "a"\n', "has no label"),
        ("label = [5]\n", r"\[\[label\]\] number 1"),
    ],
)
def test_a_bad_toml_is_told(tmp_path: Path, text: str, why: str) -> None:
    path = tmp_path / "labels.toml"
    path.write_text(text)
    with pytest.raises(LabelError, match=why):
        read_labels(path)


@pytest.mark.parametrize("content", [None, b"\xff\xfe,good\n"])
def test_a_file_that_cannot_be_read_is_told(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "labels.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LabelError, match="cannot read the labels"):
        read_labels(path)
