"""The configuration: where it is found, and how what is wrong with it is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.configs import load_config
from analysis.regress import CheckError, find_config, load_check
from tests.analysis.regress.known_good import configure

MINIMAL = '[check]\nsessions = ["good"]\n'


def fault(folder: Path, text: str, name: str = "breaker.toml") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    with pytest.raises(CheckError) as refused:
        load_check(folder / name)
    return str(refused.value).replace(str(folder) + "/", "")


def test_it_is_found_upwards_and_the_nearest_counts(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    configure(tmp_path, MINIMAL)
    assert find_config(inner) == tmp_path / "breaker.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.other]\n")
    assert find_config(inner) == tmp_path / "breaker.toml"
    (tmp_path / "a" / "pyproject.toml").write_text("[tool.breaker.limits]\ngate = 0\n")
    assert find_config(inner) == tmp_path / "a" / "pyproject.toml"
    configure(tmp_path / "a", MINIMAL)
    assert find_config(inner) == tmp_path / "a" / "breaker.toml"


def test_settings_alone_are_no_check(tmp_path: Path) -> None:
    path = configure(tmp_path, "warnAt = 3\n")
    with pytest.raises(CheckError, match=r"breaker\.toml has no \[check\]"):
        find_config(tmp_path)
    with pytest.raises(CheckError, match=r"has no \[check\]"):
        load_check(path)


def test_settings_stand_beside_the_check_in_every_spelling(tmp_path: Path) -> None:
    label = '[[label]]\nsession = "x"\nlabel = "good"\n'
    for text in ("warnAt = 3\n" + MINIMAL + label, "[settings]\nwarnAt = 3\n" + MINIMAL + label):
        path = configure(tmp_path, text)
        config = load_check(path)
        assert load_config(path) == {"warnAt": 3} == dict(config.settings)
        assert config.plan().replay.settings.warn_at == 3
        assert config.plan().warnings == ()
        assert [rule.glob for rule in config.labels] == ["x"]
    project = tmp_path / "pyproject.toml"
    for text in (
        '[tool.breaker]\nsessions = "good"\n[tool.breaker.settings]\nwarnAt = 3\n',
        '[tool.breaker]\nwarnAt = 3\n[tool.breaker.check]\nsessions = "good"\n',
    ):
        project.write_text(text)
        assert load_config(project) == {"warnAt": 3} == dict(load_check(project).settings)
        assert load_check(project).sessions == ("good",)


def test_settings_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "cordis.patch.yml").write_text("- id: repeat-tool-breaker\n  config: {warnAt: 4}\n")
    config = load_check(configure(tmp_path, MINIMAL + 'settings = "cordis.patch.yml"\n'))
    assert config.plan().replay.settings.warn_at == 4
    assert config.files == (tmp_path / "breaker.toml", tmp_path / "cordis.patch.yml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("window = 9\nwarnat = 3\n", r"breaker\.toml:2: `warnat` is no setting of the guard; did you mean `warnAt`\?"),
        ("[settings]\nwarnat = 3\n", r"breaker\.toml:2: `settings\.warnat` is no setting .*`warnAt`\?"),
        ("[other]\nx = 3\n", r"breaker\.toml:1: `other` is no setting of the guard$"),
    ],
)
def test_a_setting_nobody_reads_is_refused_and_the_nearest_named(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(CheckError, match=told):
        load_check(configure(tmp_path, text + MINIMAL))


def test_a_setting_nobody_reads_is_refused_in_any_settings(tmp_path: Path) -> None:
    (tmp_path / "guard.yml").write_text("warnat: 4\n")
    config = load_check(configure(tmp_path, MINIMAL + 'settings = "guard.yml"\n'))
    told = r"guard\.yml: `warnat` is no setting of the guard; did you mean `warnAt`\?"
    with pytest.raises(CheckError, match=told):
        config.plan()
    plain = load_check(configure(tmp_path, MINIMAL))
    with pytest.raises(CheckError, match=told):
        plain.plan(settings=tmp_path / "guard.yml")
    with pytest.raises(CheckError, match=r"--set: `warnat` is no setting of the guard"):
        plain.plan(adjust=lambda given: {**given, "warnat": 3}, adjusted=["warnat=3"])


def test_a_setting_another_ruleset_reads_is_a_warning(tmp_path: Path) -> None:
    plan = load_check(configure(tmp_path, "blockShellHttp = true\n" + MINIMAL)).plan(ruleset="0.5.3")
    assert len(plan.warnings) == 1
    assert "`blockShellHttp` is no setting of ruleset 0.5.3 and is ignored" in plan.warnings[0]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("[check.limits]\n\ngates = 0\n", "breaker.toml:5: unknown limit `gates`; did you mean `gate`?"),
        ('[check.limits]\ngate = "none"\n', "breaker.toml:4: limit `gate` must be a whole number, got 'none'"),
        ("[check.limits]\ngate = true\n", "breaker.toml:4: limit `gate` must be a whole number, got true"),
        (
            "[check.limits]\nfailure_rate = 5\n",
            'breaker.toml:4: limit `failure_rate` must be between 0 and 1 (write "5%"',
        ),
        ("[check.limits]\nby_kind.hots.gate = 0\n", "breaker.toml:4: unknown limit `by_kind.hots.gate`; did you mean"),
        ("limit = 3\n", "breaker.toml:3: `check.limit` is unknown; did you mean `limits`?"),
        ("strict = 1\n", "breaker.toml:3: `check.strict` must be true or false"),
        (
            'only = "god"\n',
            "breaker.toml:3: `check.only` must be one of good, stuck, unknown, got god; did you mean good?",
        ),
        ("baseline = true\n", "breaker.toml:3: `check.baseline` must name a file, or be false for none"),
        ('labels = "none.csv"\n', "breaker.toml:3: `check.labels` names none.csv, which is no file"),
        ("[check.settings]\nwarnAt = 3\n", "breaker.toml:3: `check.settings` must name a settings file"),
        ("[[check.expect]]\nevents = []\n", "breaker.toml:3: `check.expect.1` needs a session"),
        ('[[check.expect]]\nsession = "a"\n', "breaker.toml:3: `check.expect.1.events` must be a list of events"),
        ('[[check.expect]]\nsession = "a["\nevents = []\n', "breaker.toml:4: `check.expect.1.session` is bad glob"),
        (
            '[[check.expect]]\nsession = "a"\nevents = ["wran"]\n',
            "breaker.toml:5: `check.expect.1.events.1.stage` must be one of warn, summarize, gate, fail-warn, "
            "fail-gate, shell-http, got wran; did you mean warn?",
        ),
        (
            '[[check.expect]]\nsession = "a"\nevents = [{ stage = "warn", times = 0 }]\n',
            "breaker.toml:5: `check.expect.1.events.1.times` must be a whole number, at least 1",
        ),
        (
            '[[check.waiver]]\nreason = "r"\nexpires = 2026-01-01\n',
            "breaker.toml:3: `check.waiver.1` needs a session or",
        ),
        ('[[check.waiver]]\nsession = "a"\nexpires = 2026-01-01\n', "breaker.toml:3: `check.waiver.1` needs a reason"),
        ('[[check.waiver]]\nsession = "a"\nreason = "r"\n', "breaker.toml:3: `check.waiver.1` needs an expiry date"),
        (
            '[[check.waiver]]\nsession = "a"\nreason = "r"\nexpires = "soon"\n',
            "breaker.toml:6: `check.waiver.1.expires` must be a date such as 2026-12-31, got soon",
        ),
    ],
)
def test_what_is_wrong_is_told_with_file_line_and_key(
    more: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fault(tmp_path, MINIMAL + more).startswith(told)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[check\n", "breaker.toml:1: not TOML: "),
        ("[check]\nsessions = [\n\n", "breaker.toml:2: not TOML: "),
        ("check = 3\n", "breaker.toml:1: `check` must be a table"),
        (f"[check]\nx = {'9' * 5000}\n", "breaker.toml: not TOML: "),
        (f"[check]\nx = {'[' * 5000}\n", "breaker.toml"),
    ],
)
def test_a_malformed_file_is_one_clear_error(
    text: str, told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fault(tmp_path, text).startswith(told)


def test_what_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="cannot read the configuration: No such file"):
        load_check(tmp_path / "breaker.toml")
    (tmp_path / "breaker.toml").write_bytes(b"[check]\nx = '\xff'\n")
    with pytest.raises(CheckError, match="not UTF-8 at byte 13"):
        load_check(tmp_path / "breaker.toml")


def test_wrong_settings_name_their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = load_check(configure(tmp_path, "window = 1\n" + MINIMAL))
    with pytest.raises(CheckError, match=r"^breaker\.toml: .*`window` must be an integer >= 4"):
        config.plan()
    with pytest.raises(CheckError, match=r"0\.9"):
        config.plan(ruleset="0.9")
