"""`breaker sweep` chooses: intervals, requirements, weights, held-out scores, settings files and pictures."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from analysis.configs import load_config
from analysis.synth import Truth, write_corpus
from breaker.settings import Settings
from tests.cli.commands import Json, Ran, breaker, violations

GRID = ("--grid", "warnAt=7..11", "--grid", "failWarnAt=2,3,7", "--set", "summarizeAt=0", "--set", "failLimit=null")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the labelled corpus and its labels."""
    folder = tmp_path_factory.mktemp("choice")
    truth = write_corpus(folder / "corpus", "labelled")
    return folder / "corpus", labels_of(truth, folder / "labels.csv")


def labels_of(truth: Truth, path: Path, *, only: str = "") -> Path:
    rows = [f"{one.id},{one.label},planted\n" for one in truth.sessions if only in {"", one.label}]
    path.write_text("".join(rows))
    return path


def sweep(corpus: tuple[Path, Path], *arguments: str | Path) -> Ran:
    return breaker("sweep", corpus[0], *GRID, "--labels", corpus[1], *arguments)


def document(corpus: tuple[Path, Path], *arguments: str) -> Json:
    done = sweep(corpus, *arguments, "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    shown = json.loads(done.stdout)
    assert violations("sweep", shown) == []
    return shown


def test_intervals_stand_in_the_document_with_their_seed(corpus: tuple[Path, Path]) -> None:
    shown = document(corpus, "--intervals", "--seed", "5")
    assert shown["intervals_seed"] == 5
    for config in shown["configs"]:
        low, high = config["intervals"]["stuck_caught"]
        assert low <= config["metrics"]["stuck_caught"] <= high
        assert config["distributions"]["messages"]["max"] >= config["distributions"]["messages"]["p95"]
        assert config["distributions"]["gate_calls"]["measured_coverage"]["coverage"] < 0.93
    assert shown == document(corpus, "--intervals", "--seed", "5")
    without = document(corpus)
    assert without["intervals_seed"] is None
    assert "intervals" not in without["configs"][0]


def test_floors_stand_in_every_document(corpus: tuple[Path, Path]) -> None:
    floor = document(corpus)["floor"]
    assert (floor["alpha"], floor["good"], floor["missing"]) == (0.05, 24, 0)
    assert {track["track"]: track["threshold"] for track in floor["tracks"] if track["kind"] is None} == {
        "occurrence": 9,
        "failure": 3,
    }
    assert document(corpus, "--alpha", "0.01")["floor"]["missing"] == 75


def test_held_out_scores_stand_in_the_document(corpus: tuple[Path, Path]) -> None:
    shown = document(corpus, "--cv", "project")["held_out"]
    assert (shown["by"], shown["seed"], shown["sessions"]) == ("project", None, 40)
    assert all(fold["chosen"]["settings_hash"].startswith("sha256:") for fold in shown["folds"])
    assert document(corpus, "--cv", "4", "--seed", "3")["held_out"]["seed"] == 3


def test_requirements_and_weights_are_recorded_and_decide(corpus: tuple[Path, Path]) -> None:
    shown = document(corpus, "--require", "messages<=14", "--require", "good_touched=0")
    chosen = next(one for one in shown["configs"] if one["settings_hash"] == shown["recommended"]["settings_hash"])
    assert shown["requirements"] == ["messages<=14", "good_touched=0"]
    assert chosen["metrics"]["messages"] <= 14
    weighed = document(corpus, "--objective", "messages=1")
    assert weighed["objective"] == {"messages": 1}
    assert weighed["recommended"]["settings_hash"] != document(corpus)["recommended"]["settings_hash"]


def test_the_chosen_settings_are_written_and_printed(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    wanted = document(corpus)["recommended"]["settings_hash"]
    toml, patch = tmp_path / "breaker.toml", tmp_path / "cordis.patch.yml"
    assert sweep(corpus, "--write", toml).returncode == 0
    done = sweep(corpus, "--patch")
    assert (done.returncode, done.stderr) == (0, "")
    patch.write_text(done.stdout)
    for path in (toml, patch):
        assert Settings.from_config(load_config(path)).digest == wanted
    again = sweep(corpus, "--write", toml)
    assert (again.returncode, "--force" in again.stderr) == (2, True)
    assert sweep(corpus, "--write", toml, "--force").returncode == 0
    toml.write_text("[check]\n")
    lost = sweep(corpus, "--write", toml, "--force")
    assert (lost.returncode, "holds [check] too" in lost.stderr) == (2, True)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_pictures_are_files(corpus: tuple[Path, Path], tmp_path: Path, suffix: str) -> None:
    plot = tmp_path / f"sweep.{suffix}"
    done = sweep(corpus, "--plot", plot, "--picture", "near-miss", "--picture", "pareto")
    assert (done.returncode, done.stderr) == (0, "")
    assert plot.read_bytes()[:4] in {b"\x89PNG", b"<?xm", b"%PDF"}


def test_the_table_tells_intervals_held_out_scores_and_floors(corpus: tuple[Path, Path]) -> None:
    told = sweep(corpus, "--intervals", "--cv", "model").stdout
    for words in ("95 % intervals of warnAt=9, failWarnAt=3", "covers too little", "held out by model", "floor ("):
        assert words in told


def test_ends_of_intervals_are_columns(corpus: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "sweep.parquet"
    done = sweep(corpus, "--intervals", "--format", "csv", "--out", out)
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert all(float(row["messages.low"]) <= float(row["messages"]) <= float(row["messages.high"]) for row in rows)
    assert rows[0]["good_gated.low"] == "0.0"
    assert out.stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--require", "good_gated=0", "--require", "good_gated>=1"), 2, "contradict each other"),
        (("--require", "good_gate=0"), 2, "did you mean good_gated?"),
        (("--objective", "mesages=1"), 2, "did you mean messages?"),
        (("--require", "stuck_caught>99"), 4, "no configuration keeps to stuck_caught>99: the nearest has 16"),
        (("--alpha", "2"), 2, "alpha must lie between 0 and 1"),
        (("--alpha", "0.01", "--patch"), 4, "75 more sessions labelled good are needed"),
        (("--cv", "colour"), 2, "must be project, model, or a number of folds"),
        (("--cv", "99"), 4, "at most the 40 labelled sessions"),
        (("--picture", "heat"), 2, "there is no --plot"),
        (("--plot", "sweep.gif"), 2, "must end in .png, .svg or .pdf"),
        (("--write", "settings.yml"), 2, "must end in .toml"),
        (("--patch", "--format", "json"), 2, "in place of the table"),
    ],
)
def test_bad_choices_are_one_line_and_their_code(
    corpus: tuple[Path, Path], arguments: tuple[str, ...], code: int, message: str
) -> None:
    done = sweep(corpus, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("only", "arguments", "message"),
    [
        ("good", ("--patch",), "no session is labelled stuck"),
        ("stuck", ("--patch",), "no session is labelled good"),
        ("good", ("--cv", "project"), "no session is labelled stuck"),
        ("stuck", ("--require", "good_gated=0"), "no session is labelled good"),
        ("stuck", ("--plot", "x.png", "--picture", "pareto"), "no session is labelled good"),
    ],
)
def test_missing_labels_are_not_enough_evidence(
    tmp_path: Path, only: str, arguments: tuple[str, ...], message: str
) -> None:
    folder = tmp_path / "corpus"
    labels = labels_of(write_corpus(folder, "labelled", sessions=10), tmp_path / "labels.csv", only=only)
    done = sweep((folder, labels), *arguments)
    assert (done.returncode, done.stdout) == (4, "")
    assert message in done.stderr
