"""`breaker detectors`, and `--detector` of a replay: three renderings of the same events."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from breaker.detectors import DETECTORS, FailGuard
from tests.analysis.logs import LogWriter
from tests.cli.commands import breaker, breaker_process, json_lines, replay_document, violations

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs" / "detectors.md"
EXIT_1 = "out\n[exit code: 1]"


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """Return a session of five failures of one call."""
    log = LogWriter()
    log.user()
    for _ in range(5):
        log.bash(text=EXIT_1)
    return log.write(tmp_path / "sessions")


def test_the_document_counts_and_lists_what_each_detector_says(failing: Path) -> None:
    document = replay_document(failing, "--detector", "fail-guard", "--detector", "reminder:thresholds=[4]", "--events")
    assert violations("replay", document) == []
    counts = {"fail-guard": {"trip": 2}, "reminder": {"notice": 1}}
    assert document["totals"]["detectors"] == counts
    assert document["sessions"][0]["detectors"] == counts
    said = [(row["detector"], row["stage"], row["call"], row["count"], row["measure"]) for row in document["events"]]
    call = 'call:bash:{"command":"make"}'
    assert said == [
        ("fail-guard", "trip", 1, 2, "tool:bash"),
        ("breaker", "fail-warn", 2, 3, "cmd:make:make"),
        ("fail-guard", "trip", 3, 2, "tool:bash"),
        ("reminder", "notice", 3, 4, call),
    ]
    guard, reminder = document["detector_runs"]
    assert guard["settings"]["threshold"] == 2
    assert (guard["failures_counted"], guard["failures_on_rebuilt_code"], guard["events_on_rebuilt_code"]) == (5, 5, 2)
    assert (reminder["settings"]["thresholds"], reminder["failures_counted"]) == ([4], 0)
    assert document["detector_faults"] == []


def test_without_detectors_nothing_is_said_of_them(failing: Path) -> None:
    document = replay_document(failing)
    assert "detectors" not in document["totals"]
    assert "detector_runs" not in document
    assert "detectors" not in document["sessions"][0]


def test_the_events_are_the_same_one_a_line(failing: Path) -> None:
    options = ("--detector", "fail-guard", "--detector", "step-cap:n=1", "--detector", "breaker:failWarnAt=2")
    rows = json_lines(breaker("replay", failing, *options, "--format", "jsonl").stdout)
    assert rows == replay_document(failing, *options, "--events")["events"]
    assert Counter(row["detector"] for row in rows) == {
        "breaker": 1,
        "fail-guard": 2,
        "step-cap": 1,
        "breaker:failWarnAt=2": 1,
    }
    assert [error for row in rows for error in violations("event", row)] == []


def test_the_table_shows_counts_and_what_rests_on_rebuilt_codes(failing: Path) -> None:
    done = breaker("replay", failing, "--detector", "fail-guard", "--detector", "repeat-stop:n=5", "--events")
    assert done.returncode == 0
    assert re.search(r"^ fail-guard +trip 2 +1 +· +· *$", done.stdout, re.MULTILINE)
    assert re.search(r"^ repeat-stop +deny 1 +1 +1 +· *$", done.stdout, re.MULTILINE)
    told = "fail-guard: 5 of 5 failed results rest on an exit code rebuilt from the output, and 2 of its 2 events"
    assert told in done.stdout
    assert re.search(r"  fail-guard +#1 +turn 1 +seq 3 +trip +2/2 +allow +bash", done.stdout)
    assert re.search(r"  repeat-stop +#4 +turn 1 +seq 9 +deny +5/5 +deny +bash", done.stdout)


def test_messages_are_given_where_they_are_asked_for(failing: Path) -> None:
    with_messages, without = (
        replay_document(failing, "--detector", "fail-guard:stopText=Stop!", *option)["events"][0]
        for option in (["--messages"], ["--events"])
    )
    assert with_messages["message"] == "Stop!"
    assert "message" not in without


def test_settings_from_a_patch_file_hold_and_what_is_given_comes_on_top(failing: Path, tmp_path: Path) -> None:
    patch = tmp_path / "cordis.patch.yml"
    patch.write_text("- id: dsh-fail-guard\n  config: {threshold: 5}\n")
    options = ("--detector-config", patch, "--detector")
    trips = [
        replay_document(failing, *options, text)["totals"]["detectors"]["fail-guard"]["trip"]
        for text in ("fail-guard", "fail-guard:threshold=1")
    ]
    assert trips == [1, 5]


def test_settings_from_a_file_alone_are_those_detectors(failing: Path, tmp_path: Path) -> None:
    path = tmp_path / "detectors.toml"
    path.write_text("[fail-guard]\nthreshold = 1\n\n[reminder]\n")
    document = replay_document(failing, "--detector-config", path)
    assert list(document["totals"]["detectors"]) == ["fail-guard", "reminder"]
    assert document["totals"]["detectors"]["fail-guard"]["trip"] == 5
    done = breaker("detectors", "--detector-config", path)
    assert (done.returncode, done.stderr) == (2, "breaker: error: --detector-config goes with --demo here\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--detector", "nope"], f"unknown detector 'nope'; known: {', '.join(DETECTORS)}"),
        (["--detector", "fail-guard:threshold=0"], "detector fail-guard: `threshold` must be an integer >= 1 (got 0)"),
        (["--detector", "reminder", "--detector", "reminder"], "detector reminder is given twice"),
        (["--detector-config", "absent.yml"], "absent.yml: cannot read the settings: No such file or directory"),
    ],
)
def test_a_detector_that_cannot_be_is_a_usage_error(failing: Path, options: list[str], message: str) -> None:
    done = breaker("replay", failing, *options)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"breaker: error: {message}\n")


def test_a_file_that_speaks_of_an_unknown_detector_is_a_usage_error(failing: Path, tmp_path: Path) -> None:
    path = tmp_path / "detectors.toml"
    path.write_text("[nope]\n")
    done = breaker("replay", failing, "--detector-config", path)
    assert done.returncode == 2
    assert f"{path}: unknown detector 'nope'; known: breaker, " in done.stderr


MODULE = """
class Fragile:
    def __init__(self, config):
        pass

    def on_turn(self, turn):
        pass

    def on_call(self, call):
        if call.index == 3:
            raise ValueError("too much\\x1b[31m")
        return []

    def on_outcome(self, call, outcome):
        return []
"""


@pytest.fixture
def fragile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package whose detector raises at a session's fourth call."""
    site = tmp_path / "site"
    info = site / "fragile_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "fragile_rules.py").write_text(MODULE)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fragile-rules\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[breaker.detectors]\nbreaks-easily = fragile_rules:Fragile\n")
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()
    return site


def test_one_that_raises_is_told_with_session_and_call_and_the_run_ends_with_3(failing: Path, fragile: Path) -> None:
    options = ("--detector", "breaks-easily", "--detector", "reminder", "--format", "json")
    done = breaker("replay", failing, *options)
    assert done.returncode == 3
    assert done.stderr == (
        "breaker: warning: detector breaks-easily: session session-a, call 3 (seq 7): ValueError: too much\\x1b[31m; "
        "the session went on without it\n"
    )
    document = json.loads(done.stdout)
    assert violations("replay", document) == []
    (fault,) = document["detector_faults"]
    assert (fault["detector"], fault["session"], fault["call"], fault["seq"]) == ("breaks-easily", "session-a", 3, 7)
    assert document["totals"]["detectors"]["reminder"] == {"notice": 2}
    assert [run["sessions_given_up"] for run in document["detector_runs"]] == [1, 0]


@pytest.mark.usefixtures("fragile")
def test_many_faults_are_told_of_in_few_lines(tmp_path: Path) -> None:
    for number in range(8):
        log = LogWriter(f"session-{number}")
        for _ in range(4):
            log.bash()
        log.write(tmp_path / "many")
    done = breaker("replay", tmp_path / "many", "--detector", "breaks-easily")
    assert done.returncode == 3
    assert done.stderr.count("the session went on without it") == 5
    assert done.stderr.endswith("breaker: warning: detectors gave up in 3 more sessions\n")


def test_a_package_on_the_path_of_a_process_is_found(failing: Path, fragile: Path) -> None:
    done = breaker_process("detectors", env={"PYTHONPATH": str(fragile)})
    assert done.returncode == 0
    assert "breaks-easily" in done.stdout
    done = breaker_process("replay", failing, "--detector", "breaks-easily", env={"PYTHONPATH": str(fragile)})
    assert done.returncode == 3


# -- the verb ----------------------------------------------------------------------------------------------------


def test_the_list_names_every_detector_with_its_settings() -> None:
    document = json.loads(breaker("detectors", "--format", "json").stdout)
    assert violations("detectors", document) == []
    rows = document["detectors"]
    assert [row["name"] for row in rows] == list(DETECTORS)
    guard = next(row for row in rows if row["name"] == "fail-guard")
    assert set(guard["settings"]) == set(FailGuard.DEFAULTS)
    assert guard["stages"] == ["trip"]
    table = breaker("detectors").stdout
    markdown = breaker("detectors", "--format", "markdown").stdout
    for name in DETECTORS:
        assert name in table
        assert f"| {name} |" in markdown


def test_a_detector_without_the_demo_is_a_usage_error() -> None:
    done = breaker("detectors", "--detector", "reminder")
    assert (done.returncode, done.stderr) == (2, "breaker: error: --detector goes with --demo here\n")


@pytest.mark.parametrize("page", ["docs/detectors.md", "README.md"])
def test_the_page_shows_the_table_the_command_prints(page: str) -> None:
    page = (ROOT / page).read_text(encoding="utf-8")
    shown = re.search(r"<!-- demo table: breaker (.*) -->\n\n(.*)\n<!-- end of demo table -->", page, re.DOTALL)
    assert shown is not None
    assert shown[2] == breaker(*shown[1].split()).stdout


def test_each_detector_catches_what_was_planted_for_it_and_misses_what_it_cannot_see() -> None:
    document = json.loads(breaker("detectors", "--demo", "--format", "json").stdout)
    assert violations("detectors-demo", document) == []
    rows = {row["session"]: row for row in document["sessions"]}
    fired = {
        session: {name for name, first in row["detectors"].items() if first is not None}
        for session, row in rows.items()
    }
    in_a_row = {"reminder", "repeat-stop", "consecutive", "doom-loop:scope=step", "doom-loop:scope=turn"}
    told = Counter(name for names in fired.values() for name in names)
    assert document["fires_in"] == {name: told[name] for name in document["fires_in"]}
    assert fired["a-b-a-b"] == {"breaker", "openhands"}
    assert fired["host-grind"] == {"breaker"}
    assert fired["endpoint-guesser"] == {"breaker", "failure-streak:by=tool"}
    assert fired["failing-tests"] >= {"breaker", "fail-guard", "failure-streak:by=call", "failure-streak:by=tool"}
    assert not fired["failing-tests"] & in_a_row
    assert fired["under-reminder"] >= in_a_row - {"doom-loop:scope=step"}
    assert fired["polling"] >= {"consecutive", "openhands"}
    assert "repeat-stop" not in fired["polling"]
    assert fired["same-step"] == {"reminder", "doom-loop:scope=step", "doom-loop:scope=turn"}
    assert "step-cap:preset=smolagents" in fired["page-sweep"]
    assert fired["background-jobs"] == set()
    assert set().union(*fired.values()) == set(rows["spiral"]["detectors"])


def test_chosen_detectors_are_shown_on_the_demo() -> None:
    done = breaker("detectors", "--demo", "--detector", "step-cap:n=2")
    assert done.returncode == 0
    assert re.search(r"a-b-a-b +stuck +#12 +#1\b", done.stdout)
    assert re.search(r"^ +2  step-cap$", done.stdout, re.MULTILINE)


# -- the page ----------------------------------------------------------------------------------------------------


def test_what_one_prints_is_no_output(tmp_path: Path, fragile: Path) -> None:
    (fragile / "fragile_rules.py").write_text(MODULE.replace("if call.index == 3", "print('hello')\n        if False"))
    for number in range(2):
        log = LogWriter(f"session-{number}")
        log.bash()
        log.write(tmp_path / "two")
    words = ("replay", tmp_path / "two", "--detector", "breaks-easily", "--format", "json", "--jobs")
    for jobs in ("1", "2"):
        done = breaker_process(*words, jobs, env={"PYTHONPATH": str(fragile)})
        assert (done.returncode, done.stderr) == (0, "hello\nhello\n")
        assert json.loads(done.stdout)["totals"]["calls"] == 2


def test_the_page_documents_every_detector_and_every_setting() -> None:
    page = DOCS.read_text(encoding="utf-8")
    sections = {part.partition("\n")[0].strip(" `"): part for part in page.split("\n### ")[1:]}
    assert set(sections) >= set(DETECTORS)
    for name, kind in DETECTORS.items():
        for key in kind.defaults or {}:
            assert f"`{key}`" in sections[name], (name, key)


def test_the_pages_example_of_a_detector_runs(failing: Path) -> None:
    page = DOCS.read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class EveryNth" in block)
    site = failing.parent / "site"
    info = site / "my_rules-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "my_rules.py").write_text(code)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-rules\nVersion: 1.0\n")
    point = re.search(r'entry-points\."breaker\.detectors"\]\nevery-nth = "(.*)"', page)
    assert point is not None
    (info / "entry_points.txt").write_text(f"[breaker.detectors]\nevery-nth = {point[1]}\n")
    done = breaker_process(
        "replay", failing, "--detector", "every-nth:n=2", "--format", "json", env={"PYTHONPATH": str(site)}
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["totals"]["detectors"]["every-nth"]["notice"] == 2


def test_detectors_say_the_same_in_several_processes(demo: Path, fragile: Path) -> None:
    options = ("--detector", "fail-guard", "--detector", "breaks-easily", "--detector", "breaker:warnAt=3")
    alone, together = (
        breaker("replay", demo, *options, "--events", "--jobs", jobs, "--format", "json") for jobs in ("1", "2")
    )
    assert (alone.returncode, together.returncode) == (3, 3)
    assert together.stdout == alone.stdout
    assert together.stderr == alone.stderr
