"""Held-out scores: every session is scored once, by a choice it had no part in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from analysis.sweep import Evidence, Sweep, SweepError, hold_out
from analysis.synth import Truth
from tests.analysis.sweep.corpora import swept


@pytest.mark.parametrize(("by", "groups"), [("project", 4), ("model", 3), ("5", 5)])
def test_each_session_is_held_out_once(sweep: Sweep, by: str, groups: int) -> None:
    held = hold_out(sweep, by, seed=2)
    assert len(held.folds) == groups
    total = Counter[str]()
    for fold in held.folds:
        total.update(fold.labels)
    assert dict(total) == {"good": 24, "stuck": 16, "unknown": 0}
    assert held.sessions == 40


def test_a_fold_is_scored_by_what_its_choice_does_on_it_alone(sweep: Sweep) -> None:
    held = hold_out(sweep, "project")
    evidence = Evidence(sweep.sessions, len(sweep.rows))
    for fold in held.folds:
        assert fold.chosen is not None
        inside = [session.project == fold.group for session in sweep.sessions]
        values = evidence.metrics(inside)[fold.chosen].values
        assert fold.scores == {name: values[name] for name in fold.scores}


def test_the_gap_is_how_much_the_seen_number_flatters(sweep: Sweep) -> None:
    held = hold_out(sweep, "2", seed=1)
    assert sweep.front.recommended is not None
    for score in held.scores:
        assert score.seen == sweep.rows[sweep.front.recommended].values[score.metric]
        assert score.held_out == sum(fold.scores[score.metric] or 0 for fold in held.folds)
        worse = score.seen - score.held_out if score.metric == "stuck_caught" else score.held_out - score.seen
        assert score.gap == worse


def test_drawn_folds_have_labels_alike_and_follow_the_seed(sweep: Sweep) -> None:
    one, again, other = (hold_out(sweep, "4", seed=seed) for seed in (1, 1, 2))
    assert one == again
    assert one.seed == 1
    assert {fold.labels["stuck"] for fold in one.folds} == {4}
    assert {fold.labels["good"] for fold in other.folds} == {6}


@pytest.mark.parametrize(
    ("by", "told"),
    [
        ("1", "must be at least 2 and at most the 40 labelled sessions"),
        ("41", "must be at least 2 and at most the 40 labelled sessions"),
        ("colour", "must be project, model, or a number of folds"),
    ],
)
def test_what_cannot_be_held_out(sweep: Sweep, by: str, told: str) -> None:
    with pytest.raises(SweepError, match=told):
        hold_out(sweep, by)


def test_one_project_and_missing_labels_are_named(planted: tuple[Path, Truth], sweep: Sweep) -> None:
    folder, truth = planted
    project = sweep.sessions[0].project
    inside = {
        row.session_id for row, one in zip(sweep.corpus.sessions, sweep.sessions, strict=True) if one.project == project
    }
    alone = swept(folder, [one for one in truth.sessions if one.id in inside])
    with pytest.raises(SweepError, match=r"all 10 sessions are of one project"):
        hold_out(alone, "project")
    unlabelled = swept(folder, truth.sessions[:4], labelled=[])
    with pytest.raises(SweepError, match="no session is labelled good and none stuck"):
        hold_out(unlabelled, "project")


def test_stuck_sessions_all_in_one_group_leave_nothing_to_choose_on(planted: tuple[Path, Truth]) -> None:
    folder, truth = planted
    stuck = [one for one in truth.sessions if one.label == "stuck"][:1]
    few = swept(folder, [*(one for one in truth.sessions if one.label == "good"), *stuck])
    held = hold_out(few, "project")
    undecided = [fold for fold in held.folds if fold.chosen is None]
    assert [fold.labels["stuck"] for fold in undecided] == [1]
    assert "no session is labelled stuck" in undecided[0].why
    assert held.sessions == len(few.sessions) - sum(undecided[0].labels.values())
