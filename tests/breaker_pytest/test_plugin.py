"""The pytest plugin, in pytest runs of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.regress.known_good import write_good

pytest_plugins = ["pytester"]

CONFIG = '[check]\nsessions = ["good"]\n[check.limits]\ngate = 0\nfailure_rate = 1\n'
RED = '[[check.expect]]\nsession = "*"\nevents = []\n'


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("plugin")
    return folder, write_good(folder, sessions=10)


@pytest.fixture
def ids(pytester: pytest.Pytester, written: tuple[Path, list[str]]) -> list[str]:
    """Copy six known-good sessions and a configuration into the run's folder; return their ids."""
    folder, ids = written
    shutil.copytree(folder / "good", pytester.path / "good")
    (pytester.path / "breaker.toml").write_text(CONFIG)
    return ids


def red(pytester: pytest.Pytester) -> None:
    (pytester.path / "breaker.toml").write_text(CONFIG + RED)


def test_one_test_for_every_session_and_limit(pytester: pytest.Pytester, ids: list[str]) -> None:
    result = pytester.runpytest("--breaker", "-v", "--strict-markers")
    result.assert_outcomes(passed=6 + 2 + 1)
    for name in [*ids, "limit gate", "limit failure_rate", "read"]:
        result.stdout.fnmatch_lines([f"breaker.toml::{name} PASSED*"])


def test_without_the_option_nothing_is_added(pytester: pytest.Pytester, ids: list[str]) -> None:
    assert ids
    pytester.makepyfile("def test_own(): pass")
    pytester.runpytest().assert_outcomes(passed=1)


def test_it_runs_beside_peoples_own_tests_and_from_a_folder_below(pytester: pytest.Pytester, ids: list[str]) -> None:
    assert ids
    pytester.mkdir("tests").joinpath("test_own.py").write_text("def test_own(): pass\n")
    pytester.runpytest("--breaker", "tests").assert_outcomes(passed=10)
    pytester.runpytest("--breaker", ".").assert_outcomes(passed=10)


def test_a_failure_names_the_cause_and_no_internals(pytester: pytest.Pytester, ids: list[str]) -> None:
    red(pytester)
    result = pytester.runpytest("--breaker")
    result.assert_outcomes(passed=6, failed=3)
    result.stdout.fnmatch_lines(
        [
            f"expectation/unexpected: {ids[0]}",
            "  warn at call 17 for host:rows.example.org (7/7): no event may show (breaker.toml:*)",
            f"    breaker explain good/{ids[0]}/session.v4.jsonl --call 17",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*items.py*")


def test_selection_by_name_node_id_and_first_failure(pytester: pytest.Pytester, ids: list[str]) -> None:
    red(pytester)
    pytester.runpytest("--breaker", "-k", "limit").assert_outcomes(passed=2, deselected=7)
    pytester.runpytest("--breaker", f"breaker.toml::{ids[0]}").assert_outcomes(failed=1)
    pytester.runpytest("--breaker", "-x").assert_outcomes(passed=2, failed=1)
    assert pytester.runpytest("--breaker", "breaker.toml::nobody").ret == pytest.ExitCode.USAGE_ERROR


def test_workers_of_a_distributed_run_agree(pytester: pytest.Pytester, ids: list[str]) -> None:
    assert ids
    red(pytester)
    pytester.runpytest_subprocess("--breaker", "-n", "2").assert_outcomes(passed=6, failed=3)


def test_a_second_run_reads_no_log(pytester: pytest.Pytester, ids: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    red(pytester)
    plain = pytester.runpytest("--breaker", "--breaker-cache", "off").stdout.lines
    for _ in range(2):
        result = pytester.runpytest("--breaker", "--breaker-cache", "kept")
        result.assert_outcomes(passed=6, failed=3)
        assert result.stdout.lines[:-1] == plain[:-1]
        monkeypatch.setattr("analysis.read_session.SessionReader", None)
    assert len(list((pytester.path / "kept").rglob("*.replay"))) == len(ids)
    monkeypatch.setenv("BREAKER_CACHE", "kept")
    pytester.runpytest("--breaker").assert_outcomes(passed=6, failed=3)


def test_a_cache_that_cannot_be_one_is_refused_or_told(pytester: pytest.Pytester, ids: list[str]) -> None:
    assert ids
    (pytester.path / "file").write_text("mine")
    result = pytester.runpytest("--breaker", "--breaker-cache", "file")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--breaker-cache *file: is not a folder*"])
    result = pytester.runpytest("--breaker", "--breaker-cache", "file/cache")
    result.assert_outcomes(passed=9)
    result.stdout.fnmatch_lines(["breaker: warning: the cache *file/cache cannot be written: Not a directory"])


def test_baseline_and_waivers(pytester: pytest.Pytester, ids: list[str]) -> None:
    from tests.cli.commands import breaker

    waiver = '[[check.waiver]]\nsession = "*"\nstage = "warn"\nreason = "r"\nexpires = 2026-06-30\n'
    (pytester.path / "breaker.toml").write_text(CONFIG + waiver)
    assert breaker("approve").returncode == 0
    pytester.runpytest("--breaker", "--breaker-today", "2026-06-30").assert_outcomes(passed=11)
    shutil.rmtree(pytester.path / "good" / ids[0])
    result = pytester.runpytest("--breaker", "--breaker-today", "2026-07-01")
    result.assert_outcomes(passed=8, failed=2)
    result.stdout.fnmatch_lines(["baseline/gone: *", "waiver/expired: *"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "*no configuration*"),
        ("[check]\n", "*no sessions: name them*"),
        (CONFIG + "gates = 0\n", "*unknown limit `gates`; did you mean `gate`?*"),
        (CONFIG.replace("good", "goood"), "*goood: no such file or folder*"),
        (CONFIG.replace("good", "nobody*"), "*no sessions in nobody[*]*"),
        ('[check]\nsessions = "good"\n', "*nothing to check*"),
    ],
)
def test_a_mistake_ends_the_run_before_it_begins(
    pytester: pytest.Pytester, ids: list[str], text: str, told: str
) -> None:
    assert ids
    (pytester.path / "breaker.toml").write_text(text)
    result = pytester.runpytest("--breaker")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([told])


def test_nothing_readable_is_red(pytester: pytest.Pytester, ids: list[str]) -> None:
    for session in ids:
        next((pytester.path / "good" / session).iterdir()).write_bytes(b"\x00")
    (pytester.path / "breaker.toml").write_text(CONFIG.replace("failure_rate = 1\n", ""))
    result = pytester.runpytest("--breaker", "-rA")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*unreadable: none of 6 logs could be read*"])


def test_the_fixture_replays_for_peoples_own_tests(pytester: pytest.Pytester, ids: list[str]) -> None:
    pytester.makepyfile(
        f"""
        import pytest

        def test_default(breaker_replay):
            assert breaker_replay("good").totals.stages["gate"] == 0

        def test_settings(breaker_replay):
            replay = breaker_replay("good/{ids[0]}", warnAt=3, limits={{"host": 8}}, policy="deny", ruleset="0.5.2")
            assert replay.totals.stages["gate"] == 1
            assert replay.sessions[0].replay.events[-1].decision == "deny"

        def test_nothing(breaker_replay, tmp_path):
            with pytest.raises(AssertionError, match="no session could be replayed"):
                breaker_replay(tmp_path)

        def test_mistyped(breaker_replay):
            with pytest.raises(TypeError, match="did you mean `warnAt`"):
                breaker_replay("good", warnat=3)
            with pytest.raises(ValueError, match="must be one of"):
                breaker_replay("good", policy="none")
        """
    )
    pytester.runpytest("-W", "error").assert_outcomes(passed=4)


def test_the_plugin_alone_loads_nothing_of_the_tool() -> None:
    listing = "[name for name in sys.modules if name.split('.')[0] in {'analysis', 'breaker', 'cli'}]"
    code = f"import sys, breaker_pytest.plugin; print({listing})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
