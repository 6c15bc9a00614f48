from pathlib import Path

import pytest

from analysis.labels import LabelRules, parse_label, read_labels
from analysis.replay import ReplayPlan
from analysis.suggest import Suggestions, proposals_csv, suggest_labels
from tests.analysis.logs import LogWriter

EXIT_1 = "x\n[exit code: 1]"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("completed", "error", "open", "long", "both", "empty"):
        log = LogWriter(f"session-{name}")
        log.user()
        if name != "empty":
            for number in range(20 if name in {"long", "both"} else 3):
                log.bash(f"make {number}")
        if name == "error":
            log.bash("make", EXIT_1)
        if name == "open":
            log.call("make")
        elif name != "long":
            log.says("done")
        if name == "empty":
            log.user()
        log.write(tmp_path)
    return tmp_path


def proposed(found: Suggestions) -> dict[str, tuple[str, tuple[str, ...]]]:
    return {one.session_id.removeprefix("session-"): (one.label, one.signs) for one in found.proposals}


def test_each_sign_proposes_its_label(folder: Path) -> None:
    found = suggest_labels([folder], ReplayPlan(), long_turn=20)
    assert proposed(found) == {
        "completed": ("good", ("completed: the last call succeeded and the model closed with an answer",)),
        "empty": ("good", ("completed: the last call succeeded and the model closed with an answer",)),
        "error": ("stuck", ("ended in an error: the last call failed",)),
        "open": ("stuck", ("ended with calls that have no result: 1",)),
        "long": ("stuck", ("a very long turn: 20 calls",)),
    }
    assert (found.labelled, found.unsigned) == (0, 1)


def test_a_session_with_a_label_gets_no_proposal(folder: Path) -> None:
    rules = LabelRules([parse_label("good=session-error")])
    found = suggest_labels([folder], ReplayPlan(), labels=rules)
    assert "error" not in proposed(found)
    assert found.labelled == 1


def test_proposals_label_nothing_until_a_person_takes_off_the_mark(folder: Path, tmp_path: Path) -> None:
    text = proposals_csv(suggest_labels([folder], ReplayPlan()))
    path = tmp_path / "labels.csv"
    path.write_text(text)
    assert read_labels(path) == []
    path.write_text(text.replace("# session-error", "session-error"))
    (rule,) = read_labels(path)
    assert (rule.label, rule.glob, rule.reason) == ("stuck", "session-error", "ended in an error: the last call failed")
