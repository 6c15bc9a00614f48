"""The chosen settings as files: what is written is read back to the same settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from analysis.configs import load_config
from analysis.sweep import Base, SweepConfig, parse_axis, plan_sweep
from analysis.sweep.settings_file import UnwritableError, patch_text, settings_toml, tables_beside
from breaker.rulesets import RULESETS, Ruleset, ruleset_named
from breaker.settings import Settings

ODD = {
    "exclude": ["yes", "2024-01-01", "null", "tab\there", 'quo"ted', "back\\slash", "é\u2028\U0001f600", "\x7f"],
    "hostAliases": {"a b.example": "null-ish", "on": "off"},
    "ignoreArgs": {"*": [], "bash": ["a", "b"]},
    "limits": {"net:a.org/x?y=1#z": 4.5, "site": None, "host": 1e300},
    "failLimit": 4.25,
    "includeLocal": True,
}


def config(given: dict[str, object], ruleset: Ruleset) -> SweepConfig:
    (one,) = plan_sweep(Base(config=given, ruleset=ruleset), [parse_axis("warnAt=9")]).configs
    return one


@pytest.mark.parametrize("given", [{}, {"summarizeAt": 0, "failLimit": None}, ODD])
@pytest.mark.parametrize("name", ["0.5.0", "0.6.1", "0.8"])
def test_both_files_read_back_to_the_same_settings(tmp_path: Path, name: str, given: dict[str, object]) -> None:
    assert name in RULESETS
    one = config(given, ruleset_named(name))
    toml, patch = tmp_path / "breaker.toml", tmp_path / "cordis.patch.yml"
    toml.write_text(settings_toml(one, "because\nof this"), encoding="utf-8")
    patch.write_text(patch_text(one, "because"), encoding="utf-8")
    for path in (toml, patch):
        assert Settings.from_config(load_config(path), one.ruleset).digest == one.settings.digest
    assert "# warnAt=9: because of this" in toml.read_text(encoding="utf-8")
    assert one.settings.digest in patch.read_text(encoding="utf-8")


def test_a_text_that_means_null_in_toml_is_refused() -> None:
    one = config({"hostAliases": {"a.example": "null"}}, ruleset_named("0.8"))
    with pytest.raises(UnwritableError, match="text `null` stands for null"):
        settings_toml(one, "because")
    assert "a.example: 'null'" in patch_text(one, "because")


def test_other_tables_of_a_settings_file_are_seen(tmp_path: Path) -> None:
    path = tmp_path / "breaker.toml"
    assert tables_beside(path) == []
    path.write_text('[settings]\nwarnAt = 3\n[check]\nx = 1\n[[label]]\nsession = "a"\n')
    assert tables_beside(path) == ["check", "label"]
