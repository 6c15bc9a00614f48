"""Histograms: what is counted, by label, and that they add up over shards."""

from __future__ import annotations

from pathlib import Path

from analysis.corpus import replay_corpus
from analysis.labels import LabelRules, parse_label
from analysis.replay import ReplayPlan
from analysis.synth import write_corpus
from analysis.tables import HistogramObservation, Histograms, caps_by_kind, thresholds
from breaker.settings import Settings
from tests.analysis.logs import LogWriter
from tests.analysis.tables.exports import Gathered

FAILED = "[exit code: 1]"


def histograms(*paths: Path, labels: tuple[str, ...] = ()) -> Histograms:
    observation = HistogramObservation()
    rules = LabelRules(parse_label(text) for text in labels)
    corpus = replay_corpus(paths, ReplayPlan(), labels=rules, observation=observation)
    return observation.histograms((row.path, row.label) for row in corpus.sessions)


def two_sessions(tmp_path: Path) -> Path:
    first = LogWriter("session-a")
    first.user()
    for result in (FAILED, FAILED, "done", FAILED):
        first.bash("make", result)
    first.write(tmp_path / "a")
    second = LogWriter("session-b")
    second.user()
    second.bash("make")
    second.bash("curl https://example.com/a https://example.com/b")
    second.bash("curl https://example.com/a")
    second.write(tmp_path / "b")
    return tmp_path


def test_a_call_counts_with_the_highest_next_count_of_the_kind(tmp_path: Path) -> None:
    found = histograms(two_sessions(tmp_path))
    assert found.values("cmd", "next") == {1: 4, 2: 1, 3: 1, 4: 1}
    assert found.values("net", "next") == {1: 1, 2: 1}
    assert found.values("host", "next") == {1: 1, 2: 1}


def test_a_session_counts_with_its_peak(tmp_path: Path) -> None:
    found = histograms(two_sessions(tmp_path))
    assert found.values("cmd", "peak") == {1: 1, 4: 1}
    assert found.values("host", "peak") == {2: 1}


def test_streaks_count_with_their_whole_length(tmp_path: Path) -> None:
    found = histograms(two_sessions(tmp_path))
    assert found.values("cmd", "streak") == {1: 1, 2: 1}
    assert found.values("host", "streak") == {}


def test_values_are_kept_by_label(tmp_path: Path) -> None:
    found = histograms(two_sessions(tmp_path), labels=("stuck=session-a",))
    assert found.labels() == ["stuck", "unknown"]
    assert found.values("cmd", "peak", "stuck") == {4: 1}
    assert found.values("cmd", "peak", "unknown") == {1: 1}
    assert [key.label for key, _ in found.rows()] == sorted(key.label for key, _ in found.rows())


def test_histograms_of_shards_add_up_to_the_whole(tmp_path: Path) -> None:
    root = two_sessions(tmp_path)
    shards = histograms(root / "a").counts + histograms(root / "b").counts
    assert shards == histograms(root).counts


def test_the_table_holds_the_same_histograms_as_the_observation(tmp_path: Path) -> None:
    write_corpus(tmp_path, "demo")
    alone = histograms(tmp_path)
    rows = Gathered(tmp_path, privacy="counts").rows("histogram")
    assert [tuple(row.values()) for row in rows] == [(*key, count) for key, count in alone.rows()]


def test_thresholds_are_those_that_are_on() -> None:
    settings = Settings.from_config({"warnAt": None, "limits": {"exact": 9, "cmd": None}})
    assert thresholds(settings, "next") == thresholds(settings, "peak") == {"summarize": 11}
    assert thresholds(settings, "streak") == {"fail-warn": 3, "fail-gate": 5}
    caps = caps_by_kind(ReplayPlan(settings=settings))
    assert (caps["exact"], "cmd" in caps, "site" in caps) == (9, False, False)
