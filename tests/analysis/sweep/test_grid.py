import re
from pathlib import Path

import pytest

from analysis.configs import ConfigError
from analysis.replay import Policy
from analysis.sweep import Base, Candidate, GridAxis, GridError, parse_axis, plan_sweep, read_candidates, read_grid


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("warnAt=3..6", "warnAt", (3, 4, 5, 6)),
        ("summarizeAt=4..16..4", "summarizeAt", (4, 8, 12, 16)),
        ("summarizeAt=4..9..4", "summarizeAt", (4, 8)),
        ("limits.host=9,12,null", "limits.host", (9, 12, None)),
        ("failLimit=3..4, null,2.5", "failLimit", (3, 4, None, 2.5)),
        ("warnAt=3,3..4", "warnAt", (3, 4)),
        ("onLimit=ask,deny", "onLimit", ("ask", "deny")),
        ("ruleset=0.8,0.5.2", "ruleset", ("0.8", "0.5.2")),
        ("includeLocal=true,false", "includeLocal", (True, False)),
        ('exclude=["c"],["a","b"]', "exclude", (["c"], ["a", "b"])),
        ("limits.net:a.org/?q=1=3,4", "limits.net:a.org/?q=1", (3, 4)),
    ],
)
def test_values_of_a_key(text: str, key: str, values: tuple[object, ...]) -> None:
    assert parse_axis(text) == GridAxis(key, values)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warnAt", "must be key=values"),
        ("=3", "must be key=values"),
        ("warnAt=", "warnAt: an empty value"),
        ("warnAt=3,,4", "warnAt: an empty value"),
        ("warnAt=9..3", "the range 9..3 is empty"),
        ("warnAt=3..9..0", "the range 3..9..0 is empty"),
        ("warnAt=1..99999999", "longer than 10000 values"),
    ],
)
def test_values_that_go_nowhere(text: str, message: str) -> None:
    with pytest.raises(GridError, match=re.escape(message)):
        parse_axis(text)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ([], "nothing to sweep"),
        (["warnAt=3", "warnAt=4"], "gives warnAt twice"),
        (["limits={}", "limits.host=3"], "both limits and its entry limits.host"),
        (["warnat=3"], "did you mean `warnAt`?"),
        (["limits.hots=3"], "did you mean `limits.host`?"),
        (["ruleset=0.9"], "unknown ruleset '0.9'"),
        (["policy=ask"], "unknown policy 'ask'"),
        (["blockShellHttp=true", "ruleset=0.5.2"], "only the rulesets 0.6.1, 0.7.0"),
        (["warnAt=3,2.5"], "config warnAt=2.5: repeat-tool-breaker: `warnAt` must be an integer (got 2.5)"),
        (["limits.host=1,9", "warnAt=3"], "config limits.host=1, warnAt=3: "),
        (["warnAt=1..1000", "summarizeAt=1..1000"], "1000000 configurations are more than the 100000"),
    ],
)
def test_grids_that_cannot_be_swept(axes: list[str], message: str) -> None:
    with pytest.raises(GridError, match=re.escape(message)):
        plan_sweep(Base(), [parse_axis(axis) for axis in axes])


def test_every_point_carries_its_whole_effective_settings() -> None:
    base = Base(config={"failLimit": 7, "limits": {"host": 9}})
    plan = plan_sweep(base, [parse_axis("warnAt=3,4"), parse_axis("limits.exact=5,6")])
    assert [(c.settings.warn_at, c.settings.limits["exact"]) for c in plan.configs] == [(3, 5), (3, 6), (4, 5), (4, 6)]
    assert {(c.settings.fail_limit, c.settings.limits["host"], c.settings.limits["cmd"]) for c in plan.configs} == {
        (7, 9, 12)
    }
    assert plan.points == 4


def test_points_that_come_to_the_same_are_one_row() -> None:
    plan = plan_sweep(Base(), [parse_axis("warnAt=0,null,3")])
    assert ([config.settings.warn_at for config in plan.configs], plan.merged) == ([None, 3], 1)


def test_rulesets_bring_their_own_defaults() -> None:
    plan = plan_sweep(Base(), [parse_axis("ruleset=0.5.2,0.7.0,0.8")])
    blocks = [config.settings.shell_http_block for config in plan.configs]
    assert blocks[0] is None
    assert blocks[1] is not None
    assert "http" in blocks[1]
    assert blocks[2] is not None
    assert "http" not in blocks[2]


def test_policies_are_part_of_a_row() -> None:
    policies: tuple[Policy, ...] = ("approve", "observe")
    plan = plan_sweep(Base(), [GridAxis("policy", policies)])
    assert tuple(config.policy for config in plan.configs) == policies


def test_a_sample_of_a_huge_grid_is_drawn_by_its_seed_without_repetition() -> None:
    axes = [parse_axis(text) for text in ("warnAt=1..100", "summarizeAt=1..100", "failWarnAt=1..100", "window=4..99")]

    def drawn(seed: int) -> list[str]:
        return [config.told for config in plan_sweep(Base(), axes, sample=50, seed=seed).configs]

    assert len(set(drawn(1))) == 50
    assert drawn(1) == drawn(1) != drawn(2)
    small = plan_sweep(Base(), [parse_axis("warnAt=1..5")], sample=9)
    assert ([config.settings.warn_at for config in small.configs], small.seed) == ([1, 2, 3, 4, 5], None)


def test_a_grid_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "grid.toml"
    path.write_text('warnAt = [3, "5..6"]\nonLimit = "ask,deny"\n[limits]\nhost = [9, "null"]\n')
    assert read_grid(path) == [
        GridAxis("warnAt", (3, 5, 6)),
        GridAxis("onLimit", ("ask", "deny")),
        GridAxis("limits.host", (9, None)),
    ]


def test_candidates_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "candidates.toml"
    path.write_text('[B]\nwarnAt = 6\n[B.limits]\nhost = "null"\n[C]\nruleset = "0.5.2"\n')
    candidates = read_candidates(path)
    plan = plan_sweep(Base(), candidates=candidates)
    assert [config.name for config in plan.configs] == ["B", "C"]
    first, second = plan.configs
    assert (first.settings.warn_at, first.settings.limits["host"], first.settings.limits["cmd"]) == (6, None, 12)
    assert second.ruleset.name == "0.5.2"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"warnat": 3}, "candidate B: names `warnat`, which is no setting; did you mean `warnAt`?"),
        ({"window": 3}, "config B: repeat-tool-breaker: `window`"),
    ],
)
def test_a_candidate_that_cannot_be_used_is_named(config: dict[str, object], message: str) -> None:
    with pytest.raises(GridError, match=re.escape(message)):
        plan_sweep(Base(), candidates=[Candidate("B", config)])


def test_a_key_without_values_is_told_from_a_file_that_is_not_there(tmp_path: Path) -> None:
    for text in ("warnAt", "limits.host"):
        with pytest.raises(GridError, match=f"--grid {text}: must be key=values, or a file of them"):
            read_grid(Path(text))
    with pytest.raises(ConfigError, match=r"no\.toml: cannot read the settings: No such file"):
        read_grid(tmp_path / "no.toml")
