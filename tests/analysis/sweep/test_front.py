from collections.abc import Sequence
from pathlib import Path

import pytest

from analysis.labels import LabelRules, parse_label
from analysis.replay import ReplayPlan
from analysis.sweep import Base, Sweep, parse_axis, plan_sweep, sweep_corpus
from analysis.synth import Truth, write_corpus


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    folder = tmp_path_factory.mktemp("labelled")
    return folder, write_corpus(folder, "labelled")


def swept(corpus: tuple[Path, Truth], *axes: str, labels: Sequence[str] = ("good", "stuck")) -> Sweep:
    folder, truth = corpus
    rules = [parse_label(f"{one.label}={one.id}") for one in truth.sessions if one.label in labels]
    plan = plan_sweep(Base(config={"failLimit": None}), [parse_axis(axis) for axis in axes])
    return sweep_corpus([folder], plan, ReplayPlan(), labels=LabelRules(rules))


def test_the_planted_best_range_is_the_front(labelled: tuple[Path, Truth]) -> None:
    sweep = swept(labelled, "warnAt=6..13", "failWarnAt=2..7", "summarizeAt=0")
    clean = {
        (config.settings.warn_at, config.settings.fail_warn_at)
        for config, row in zip(sweep.plan.configs, sweep.rows, strict=True)
        if row.values["good_touched"] == 0 and row.values["stuck_caught"] == sweep.labels["stuck"]
    }
    assert clean == {(warn, fail) for warn in (9, 10, 11) for fail in (3, 4, 5, 6)}
    front = sweep.front
    assert front.recommended is not None
    best = sweep.plan.configs[front.recommended].settings
    assert (best.warn_at, best.fail_warn_at) in clean
    assert f"catches {sweep.labels['stuck']} of {sweep.labels['stuck']} stuck" in front.why
    assert front.members is not None
    assert front.members[front.recommended]
    assert 0 < sum(front.members) < len(front.members)


def test_nothing_on_the_front_is_beaten(labelled: tuple[Path, Truth]) -> None:
    sweep = swept(labelled, "warnAt=6..12..2", "failWarnAt=2,4,0")
    front = sweep.front
    assert front.members is not None

    def costs(number: int) -> tuple[float, ...]:
        values = sweep.rows[number].values
        gains = [-(values[name] or 0) for name in ("stuck_caught", "lead_calls_median")]
        costs = [values[name] or 0 for name in ("false_rejections", "good_touched", "messages")]
        return (*costs, *gains, -sweep.rows[number].lead_calls)

    numbers = range(len(sweep.rows))
    for number in numbers:
        beaten = any(
            costs(other) != costs(number)
            and all(mine <= theirs for mine, theirs in zip(costs(other), costs(number), strict=True))
            for other in numbers
        )
        assert front.members[number] is not beaten


def test_a_lead_is_what_was_left_after_the_first_trip(labelled: tuple[Path, Truth]) -> None:
    early, late = swept(labelled, "warnAt=3,11", "failWarnAt=0", "summarizeAt=0").rows
    assert early.values["lead_calls_median"] is not None
    assert late.values["lead_calls_median"] is not None
    assert early.values["lead_calls_median"] > late.values["lead_calls_median"] >= 0
    assert early.values["lead_minutes_median"] is not None


@pytest.mark.parametrize(
    ("labels", "null", "reason"),
    [
        ((), ("good_touched", "good_gated", "stuck_caught", "lead_calls_median"), "no session is labelled stuck"),
        (("good",), ("stuck_caught", "stuck_gated", "lead_tokens_median"), "no session is labelled stuck"),
        (("stuck",), ("good_touched", "good_gated"), "no session is labelled good"),
    ],
)
def test_what_needs_a_label_is_null_with_its_reason(
    labelled: tuple[Path, Truth], labels: Sequence[str], null: Sequence[str], reason: str
) -> None:
    sweep = swept(labelled, "warnAt=9", labels=labels)
    (row,) = sweep.rows
    for name in null:
        assert row.values[name] is None
        assert "no session is labelled" in row.reasons[name]
    assert sweep.front.recommended is None
    assert reason in sweep.front.why
