"""What the command imports before it does anything: not the heavy libraries."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from breaker.rulesets import DEFAULT_RULESET
from cli import app, main
from cli.guard import guard
from cli.guard_process import DEFAULT_ANSWER
from cli.settings import DEFAULT_RULESET_NAME
from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE, breaker, json_lines, lines_of

HEAVY = {"polars", "pyarrow", "matplotlib", "numpy", "scipy", "jinja2"}

STARTS = [
    ["--help"],
    ["replay", "--help"],
    ["guard"],
    ["measure", "curl -s https://api.example.com"],
    ["classify", "--jsonl"],
    ["schema", "replay"],
]


IMPORTED = re.compile(r"^import '([^']+)' #", re.MULTILINE)
"""How the interpreter tells of a module it has loaded, however that was asked for."""

OWN = {"breaker", "analysis", "cli"}

ENGINE = {
    "breaker",
    "breaker.ecmascript",
    "breaker.engine",
    "breaker.failure",
    "breaker.kinds",
    "breaker.measures",
    "breaker.rulesets",
    "breaker.settings",
    "breaker.shell",
    "breaker.shellhttp",
    "breaker.shellhttp.machine",
    "breaker.urls",
    "breaker.window",
}
"""What one guard runs: not the shell-HTTP rules, not the words of messages, not the rules it is compared with."""

NOT_TO_GUARD = {
    *("typer", "click", "rich", "pydantic", "yaml", "tomllib", "msgspec", "zstandard"),
    *("argparse", "difflib", "hashlib", "importlib.metadata", "subprocess", "tempfile", "urllib.parse"),
}
"""What takes longer to load than the engine, and what it does not need for a first answer."""

PARSING = {"cli", "cli.main", "cli.exits", "cli.app", "cli.early", "cli.cache_names"}
"""What stands between a command's start and its verb."""
ASKED = {"kind": "call", "id": 1, "name": "bash", "arguments": {"command": "curl -s https://api.example.com/items"}}


def loaded(script: Path, *arguments: str, folder: Path | None = None, stdin: bytes = b"") -> set[str]:
    """Return the modules a script imports when it is run, as the interpreter itself reports them."""
    given = [sys.executable, "-v", str(script), *arguments]
    env = {"PYTHONPATH": str(folder)} if folder is not None else None
    done = subprocess.run(given, input=stdin, capture_output=True, env=env, timeout=PATIENCE, check=True)
    return set(IMPORTED.findall(done.stderr.decode()))


def packages_of(names: set[str]) -> set[str]:
    """Return the top-level packages of modules."""
    return {name.partition(".")[0] for name in names}


def imported(script: Path, *arguments: str, folder: Path | None = None) -> set[str]:
    """Return the top-level packages a script imports when it is run."""
    return packages_of(loaded(script, *arguments, folder=folder))


def own(names: set[str]) -> set[str]:
    """Return the modules that are this project's."""
    return {name for name in names if name.partition(".")[0] in OWN}


def test_a_guard_answers_with_the_engine_and_nothing_else_loaded() -> None:
    names = loaded(COMMAND, "guard", stdin=lines_of([ASKED]))
    assert own(names) == ENGINE | {"cli", "cli.main", "cli.exits", "cli.guard_process", "cli.jsonlines"}
    assert names & NOT_TO_GUARD == set()
    assert {"ada_url", "json"} <= names


def test_help_loads_the_parser_and_no_verb() -> None:
    names = loaded(COMMAND, "--help")
    assert own(names) == PARSING
    assert "typer" in names
    assert packages_of(names) & {"ada_url", "msgspec", "yaml", "zstandard", "pydantic"} == set()


def test_a_verb_loads_no_other_verb() -> None:
    names = loaded(COMMAND, "schema", "replay")
    assert own(names) == PARSING | {"cli.schema", "analysis", "analysis.schemas"}


def test_who_has_others_read_loads_no_engine(tmp_path: Path) -> None:
    for number in range(2):
        log = LogWriter(f"session-{number}")
        log.user()
        log.bash("make", "out\n[exit code: 1]")
        log.write(tmp_path)
    names = loaded(COMMAND, "replay", str(tmp_path), "--jobs", "2", "--cache", "off", "--format", "json")
    assert "analysis.corpus" in names
    assert names & {"breaker.engine", "breaker.measures", "ada_url", "analysis.sessions.events"} == set()


def test_a_guard_with_settings_reads_yaml_only_out_of_yaml(tmp_path: Path) -> None:
    for name, text in (("a.toml", "warnAt = 3\n"), ("a.json", '{"warnAt": 3}'), ("a.yml", "warnAt: 3\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        names = loaded(COMMAND, "guard", "--config", str(tmp_path / name), stdin=lines_of([ASKED]))
        assert ("yaml" in names) == name.endswith(".yml")
        assert "breaker.engine" in names


def result(identity: object, code: int) -> dict[str, object]:
    return {"kind": "result", "id": identity, "result": {"isError": False, "value": {"exitCode": code}}}


def test_a_guard_that_is_not_parsed_answers_as_one_that_is(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = [ASKED | {"id": number, "agent": number % 3} for number in range(40)]
    records = [part for call in calls for part in (call, result(call["id"], 7))]
    approved = [ASKED | {"agent": "b", "answer": "approve"}] * 14
    curious = [{"kind": "user"}, {"kind": "notice"}, {"kind": "x"}, ASKED | {"answer": 1}]
    stdin = lines_of([*records, *approved, *curious, *records]) + b"{\n[1]\n\xff\n\n"
    unparsed = breaker("guard", stdin=stdin)
    built: list[str | None] = []
    build = app.build_app

    def watched(verb: str | None) -> object:
        built.append(verb)
        return build(verb)

    monkeypatch.setattr(app, "build_app", watched)
    assert breaker("guard", stdin=b"").returncode == 0
    assert built == []
    monkeypatch.setattr(main, "_UNPARSED", None)
    parsed = breaker("guard", stdin=stdin)
    assert built == ["guard"]
    assert (unparsed.returncode, unparsed.stdout, unparsed.stderr) == (0, parsed.stdout, "")
    assert (parsed.returncode, parsed.stderr) == (0, "")
    decisions = {answer.get("decision") for answer in json_lines(unparsed.stdout)}
    assert {"allow", "ask-declined", "deny", "ask-approved", None} <= decisions


def test_a_guard_that_is_not_parsed_has_the_defaults_of_the_options() -> None:
    defaults = {name: option.default for name, option in inspect.signature(guard).parameters.items()}
    assert defaults == {
        "config": None,
        "sets": None,
        "ruleset": DEFAULT_RULESET.name,
        "answer": DEFAULT_ANSWER,
        "shell_http": False,
        "machine": None,
        "messages": False,
    }
    assert DEFAULT_RULESET.name == DEFAULT_RULESET_NAME


@pytest.mark.parametrize("verb", app.VERBS)
def test_every_verb_is_loaded_by_its_name(verb: str) -> None:
    done = breaker(verb, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: breaker {verb} ")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["--help", "label"], ["--", "--help"]])
def test_help_names_every_verb_loaded_or_not(arguments: list[str]) -> None:
    done = breaker(*arguments)
    lines = (done.stdout + done.stderr).partition("Commands:\n")[2].splitlines()
    assert dict(line.split(maxsplit=1) for line in lines) == app.VERBS


@pytest.mark.parametrize(("given", "meant"), [("histogran", "histogram"), ("labl", "label")])
def test_a_mistyped_verb_is_answered_with_the_nearest(given: str, meant: str) -> None:
    done = breaker(given)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"breaker: error: No such command '{given}'. Did you mean '{meant}'?\n"


@pytest.mark.parametrize("arguments", STARTS, ids=" ".join)
def test_a_start_imports_no_heavy_library(arguments: list[str]) -> None:
    names = imported(COMMAND, *arguments)
    assert "cli" in names
    assert names & HEAVY == set()
    if "--help" in arguments:
        assert names & {"ada_url", "msgspec", "yaml", "zstandard", "analysis"} == set()


def small_corpus(folder: Path) -> tuple[Path, str]:
    """Write one session of a command that fails again and again; return the folder and the session's id."""
    log = LogWriter("session-small")
    log.user()
    for _ in range(6):
        log.bash("make", "[exit code: 1]")
    log.write(folder / "corpus")
    return folder / "corpus", "session-small"


@pytest.mark.parametrize("verb", ["replay", "histogram", "lint", "check", "explain", "sweep"])
def test_a_command_that_makes_no_table_and_no_picture_loads_nothing_that_does(tmp_path: Path, verb: str) -> None:
    corpus, session = small_corpus(tmp_path)
    given = [str(corpus)]
    if verb == "explain":
        given = [session, str(corpus)]
    elif verb == "check":
        config = tmp_path / "breaker.toml"
        config.write_text('[check]\nsessions = ["corpus"]\n[check.limits]\nsessions_min = 1\n', encoding="utf-8")
        given = ["--config", str(config)]
    elif verb == "sweep":
        given = [str(corpus), "--grid", "warnAt=2,3"]
    names = imported(COMMAND, verb, *given)
    assert "analysis" in names
    assert names & HEAVY == set()


def test_the_probe_sees_the_heavy_libraries_a_script_imports_late(tmp_path: Path) -> None:
    for library in HEAVY:
        (tmp_path / f"{library}.py").write_text("", encoding="utf-8")
    script = tmp_path / "script.py"
    lines = "".join(f"    import {library}\n" for library in sorted(HEAVY - {"scipy"}))
    script.write_text(f"def late():\n{lines}\nlate()\n", encoding="utf-8")
    assert imported(script, folder=tmp_path) & HEAVY == HEAVY - {"scipy"}
