import json
import shutil
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from analysis.corpus import CorpusReplay, Period, replay_corpus
from analysis.labels import LabelConflict, LabelRules, parse_label
from analysis.replay import ReplayPlan
from analysis.sessions.find import PathMissing
from analysis.sessions.outcome_kinds import OUTCOME_KINDS
from analysis.synth import write_corpus
from tests.analysis.logs import START, LogWriter

EXIT_1 = "x\n[exit code: 1]"


def session(session_id: str = "session-a", *commands: str, version: int = 4, text: str = EXIT_1) -> LogWriter:
    log = LogWriter(session_id, version=version)
    log.user()
    for command in commands or ("make",):
        log.bash(command, text)
    return log


def replay(*paths: Path, **options: object) -> CorpusReplay:
    plan = options.get("plan", ReplayPlan(keep_events=True))
    assert isinstance(plan, ReplayPlan)
    return replay_corpus(paths, plan)


def states(corpus: CorpusReplay) -> dict[str, int]:
    return {state: count for state, count in corpus.read_counts.items() if count}


# What a corpus adds up to


def test_sessions_add_up(tmp_path: Path) -> None:
    session("session-a", "a", "a", "a").write(tmp_path)
    session("session-b", "b", "b", text="ok").write(tmp_path)
    log = LogWriter("session-c", origin="subagent", parentSession="session-a", delegationDepth=1, cwd="/p")
    for _ in range(5):
        log.bash("a", EXIT_1)
    log.write(tmp_path, compressed=True)
    corpus = replay(tmp_path)
    totals = corpus.totals
    assert (totals.turns, totals.calls, totals.tracked, totals.settled, totals.untold) == (2, 10, 10, 10, 0)
    assert totals.outcomes == {"failed": 8, "ok": 2}
    assert totals.stages == {"fail-warn": 2}
    assert totals.streaks == {2: 2, 3: 2, 4: 1, 5: 1, 8: 0}
    assert totals.streaks_by_label == {"unknown": totals.streaks}
    ((key, count),) = totals.failures_by_count
    assert (key.tool, key.reason, key.detail, key.evidence, count) == ("bash", "exit", "1", "rebuilt", 8)
    assert [(row.session_id, row.agent, row.version, row.project, row.read) for row in corpus.sessions] == [
        ("session-a", "main", 4, None, "ok"),
        ("session-b", "main", 4, None, "ok"),
        ("session-c", "subagent", 4, "/p", "ok"),
    ]
    assert states(corpus) == {"ok": 3}
    assert corpus.spotless


def test_a_parent_and_its_subagents_have_windows_of_their_own(tmp_path: Path) -> None:
    for number, name in enumerate(("session-p", "session-c1", "session-c2")):
        log = LogWriter(name, delegationDepth=min(number, 1))
        if number:
            log.header |= {"origin": "subagent", "parentSession": "session-p"}
        for _ in range(8):
            call = log.call(name="read", arguments='{"path":"x"}')
            log.result(call)
        log.write(tmp_path)
    corpus = replay(tmp_path)
    peaks = [row.replay.peak.count for row in corpus.sessions if row.replay.peak is not None]
    assert peaks == [8, 8, 8]
    assert corpus.totals.stages == {"warn": 3}


# The same session twice


def test_a_copy_that_stops_earlier_is_a_duplicate(tmp_path: Path) -> None:
    session("session-a", "a", "b").write(tmp_path / "long")
    session("session-a", "a").write(tmp_path / "short")
    for paths in ((tmp_path,), (tmp_path / "short", tmp_path / "long")):
        corpus = replay(*paths)
        assert states(corpus) == {"ok": 1, "duplicate": 1}
        assert [(row.path.split("/")[-4], row.replay.calls) for row in corpus.sessions] == [("long", 2)]
        assert corpus.totals.calls == 2
        (copied,) = [report for report in corpus.reports if report.state == "duplicate"]
        assert copied.notes == [f"the same session as {corpus.sessions[0].path}, which counts"]
        assert not corpus.spotless


def test_of_equal_copies_the_higher_version_counts_then_the_first_path(tmp_path: Path) -> None:
    for place, version in (("a", 3), ("b", 4), ("c", 4)):
        session("session-a", "a", "b", version=version).write(tmp_path / place)
    corpus = replay(tmp_path)
    assert states(corpus) == {"ok": 1, "duplicate": 2}
    (row,) = corpus.sessions
    assert (row.version, row.path.split("/")[-4]) == (4, "b")


def test_a_torn_copy_is_a_duplicate_of_the_whole_one(tmp_path: Path) -> None:
    log = session("session-a", "a", "b", "c")
    log.write(tmp_path / "whole")
    path = log.write(tmp_path / "cut", compressed=True)
    path.write_bytes(path.read_bytes()[:-10])
    assert states(replay(tmp_path)) == {"ok": 1, "duplicate": 1}


def test_one_id_with_other_content_is_two_sessions(tmp_path: Path) -> None:
    session("session-a", "a", "b").write(tmp_path / "one")
    session("session-a", "a", "c").write(tmp_path / "two")
    corpus = replay(tmp_path)
    assert states(corpus) == {"ok": 2}
    assert (len(corpus.sessions), corpus.totals.calls) == (2, 4)
    assert [row.notes for row in corpus.sessions] == [("2 different sessions share the id session-a",)] * 2


def test_sessions_without_an_id_are_never_copies(tmp_path: Path) -> None:
    for place in ("one", "two"):
        log = session("x")
        del log.header["id"]
        path = tmp_path / place / "session.v4.jsonl"
        path.parent.mkdir()
        path.write_bytes(log.text)
    corpus = replay(tmp_path)
    assert states(corpus) == {"ok": 2}
    assert [row.session_id for row in corpus.sessions] == ["one", "two"]


def test_an_older_generation_is_superseded_and_never_an_error(tmp_path: Path) -> None:
    session("session-a", "a", version=3).write(tmp_path)
    session("session-a", "a", "b").write(tmp_path)
    corpus = replay(tmp_path)
    assert states(corpus) == {"ok": 1, "superseded": 1}
    assert (corpus.totals.calls, corpus.spotless) == (2, True)


def test_a_sound_older_generation_does_not_stand_in_for_a_corrupt_newer_one(tmp_path: Path) -> None:
    session("session-a", "a", version=3).write(tmp_path)
    path = session("session-a", "a", "b").write(tmp_path)
    path.write_bytes(b"garbage\n")
    corpus = replay(tmp_path)
    assert states(corpus) == {"corrupt": 1, "superseded": 1}
    assert (corpus.sessions, corpus.totals.calls, corpus.spotless) == ((), 0, False)


def test_every_state_is_counted(tmp_path: Path) -> None:
    session("session-ok").write(tmp_path)
    path = session("session-torn").write(tmp_path)
    path.write_bytes(path.read_bytes()[:-5])
    log = session("session-partial")
    log.raw(b"[")
    log.write(tmp_path)
    log = session("session-new")
    log.version = log.header["version"] = 5
    log.write(tmp_path)
    session("session-empty").write(tmp_path).write_bytes(b"")
    session("session-corrupt").write(tmp_path).write_bytes(b"{}\n")
    corpus = replay(tmp_path)
    assert states(corpus) == {"ok": 1, "torn": 1, "partial": 1, "corrupt": 1, "unsupported": 1, "empty": 1}
    assert (len(corpus.reports), len(corpus.sessions)) == (6, 3)
    assert corpus.size == sum(report.size for report in corpus.reports)


# Forks


def forked(parent: LogWriter, session_id: str = "session-b") -> LogWriter:
    """Return a fork that has copied all of its parent and made one call of its own."""
    log = LogWriter(session_id, parentSession=str(parent.header["id"]))
    log.header["isSeeded"] = True
    log.lines, log.next = list(parent.lines), parent.next
    log.marker()
    log.user()
    log.bash("own", EXIT_1)
    return log


def test_what_a_fork_inherits_counts_in_its_parent_only(tmp_path: Path) -> None:
    parent = session("session-a", "a", "b", "c")
    parent.write(tmp_path)
    child = forked(parent)
    child.write(tmp_path)
    forked(child, "session-c").write(tmp_path)
    corpus = replay(tmp_path)
    assert [(row.session_id, row.replay.calls, row.notes) for row in corpus.sessions] == [
        ("session-a", 3, ()),
        ("session-b", 1, ()),
        ("session-c", 1, ()),
    ]
    assert (corpus.totals.calls, corpus.totals.outcomes["failed"], corpus.totals.turns) == (5, 5, 3)


def test_a_fork_without_its_parent_says_so_and_counts_the_same(tmp_path: Path) -> None:
    forked(session("session-a", "a", "b")).write(tmp_path)
    corpus = replay(tmp_path)
    assert corpus.totals.calls == 1
    assert corpus.sessions[0].notes == ("its parent session-a is not here: the inherited part counts nowhere",)
    assert states(corpus) == {"ok": 1}


def test_a_subagent_without_its_parent_misses_nothing(tmp_path: Path) -> None:
    log = LogWriter("session-b", parentSession="session-a", origin="subagent")
    log.bash()
    log.write(tmp_path)
    assert replay(tmp_path).sessions[0].notes == ()


# What is looked at


def test_a_period_is_by_the_time_of_creation(tmp_path: Path) -> None:
    for number in range(4):
        log = session(f"session-{number}")
        log.header["createdAt"] = START + number
        if number == 3:
            del log.header["createdAt"]
        log.write(tmp_path)
    period = Period(since=START + 1, until=START + 2)
    corpus = replay_corpus([tmp_path], ReplayPlan(), period=period)
    assert [row.session_id for row in corpus.sessions] == ["session-1"]
    assert corpus.filtered == 3
    assert replay_corpus([tmp_path], ReplayPlan(), period=Period()).filtered == 0


def test_a_path_that_does_not_exist_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(PathMissing):
        replay(tmp_path / "nowhere")


def test_a_folder_without_sessions_is_an_empty_corpus(tmp_path: Path) -> None:
    corpus = replay(tmp_path)
    assert (corpus.sessions, corpus.reports, corpus.totals.calls) == ((), (), 0)


def test_labels_are_given_by_id_or_path(tmp_path: Path) -> None:
    for name in ("session-a", "session-b", "session-c"):
        session(name, "a", "a", "a").write(tmp_path)
    labels = LabelRules([parse_label("good=session-a"), parse_label("stuck=*/session-b/*"), parse_label("good=zzz*")])
    corpus = replay_corpus([tmp_path], ReplayPlan(), labels=labels)
    assert [row.label for row in corpus.sessions] == ["good", "stuck", "unknown"]
    assert {label: streaks[3] for label, streaks in corpus.totals.streaks_by_label.items()} == {
        "good": 1,
        "stuck": 1,
        "unknown": 1,
    }
    assert corpus.warnings == ("no session matches --label good=zzz* (zzz*)",)


def test_two_labels_for_one_session_are_refused(tmp_path: Path) -> None:
    session().write(tmp_path)
    labels = LabelRules([parse_label("good=session-*"), parse_label("stuck=*a")])
    with pytest.raises(LabelConflict, match="session-a"):
        replay_corpus([tmp_path], ReplayPlan(), labels=labels)


# One corpus in every version


def test_one_corpus_written_in_every_version_replays_alike(tmp_path: Path) -> None:
    seen: list[dict[str, object]] = []
    events = 0
    for version in (0, 3, 4):
        out = tmp_path / str(version)
        truth = write_corpus(out, "demo", version=version, plain=version == 3)
        corpus = replay(out)
        assert corpus.totals.untold == 0
        assert corpus.totals.tracked == sum(corpus.totals.outcomes[kind] for kind in OUTCOME_KINDS)
        assert len(corpus.sessions) == len(truth.sessions)
        events += sum(len(row.replay.events) for row in corpus.sessions)
        seen.append(
            {
                row.session_id: (
                    row.replay.turns,
                    row.replay.calls,
                    row.replay.tracked,
                    row.replay.outcomes,
                    row.replay.failed_by,
                    row.replay.not_started,
                    row.replay.peak,
                    row.replay.longest_streak,
                    [
                        (event.call, event.turn, event.stage, event.measure, event.count, event.decision)
                        for event in row.replay.events
                    ],
                )
                for row in corpus.sessions
            }
        )
    assert seen[0] == seen[1] == seen[2]
    assert events > 30


# Memory

_CALL_BYTES = 50_000


def write_large(path: Path, calls: int) -> None:
    """Write one compressed log of calls with long results, a frame for each call, without holding it."""
    path.parent.mkdir(parents=True)
    frames = zstandard.ZstdCompressor(level=1, write_checksum=True)
    log = LogWriter("session-large")
    with path.open("wb") as file:
        file.write(frames.compress(json.dumps(log.header).encode() + b"\n"))
        for number in range(calls):
            log.lines.clear()
            log.bash(f"make {number % 40}", f"{number:09}" * (_CALL_BYTES // 9) + EXIT_1)
            file.write(frames.compress(b"".join(line + b"\n" for line in log.lines)))


def test_a_session_twice_as_long_takes_no_more_memory(tmp_path: Path) -> None:
    peaks: list[int] = []
    for calls in (150, 300):
        write_large(tmp_path / f"{calls}/session.v4.jsonl.zstd", calls)
        tracemalloc.start()
        corpus = replay(tmp_path / f"{calls}")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert corpus.totals.outcomes == {"failed": calls}
    assert peaks[1] < peaks[0] + 1_000_000


_MEASURED = """
import sys
from pathlib import Path
from analysis.corpus import replay_corpus
from analysis.replay import ReplayPlan
corpus = replay_corpus([Path(sys.argv[1])], ReplayPlan(keep_events=True))
totals = corpus.totals
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM")).split()[1]
print(totals.calls, totals.outcomes["failed"], sum(report.expanded for report in corpus.reports), peak)
"""


@pytest.mark.slow
def test_two_hundred_megabytes_replay_in_under_three_hundred(tmp_path: Path) -> None:
    path = tmp_path / "s/session.v4.jsonl.zstd"
    write_large(path, 4000)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(path)], capture_output=True, text=True, check=True, timeout=300
    )
    calls, failed, expanded, kilobytes = map(int, done.stdout.split())
    assert (calls, failed) == (4000, 4000)
    assert expanded > 200_000_000
    assert kilobytes < 300_000
    shutil.rmtree(tmp_path / "s")
