"""How settings reach a command: files in every format, `--set`, rulesets."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from breaker.ecmascript import canonical_json
from cli.exits import Failed
from cli.settings import load_settings
from tests.analysis.logs import LogWriter
from tests.cli.commands import Json, breaker, raw_members, replay_document, vector_lines


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Return a folder with one short session."""
    log = LogWriter()
    log.user()
    log.bash()
    log.write(tmp_path / "sessions")
    return tmp_path / "sessions"


def settings(corpus: Path, *arguments: str | Path) -> Json:
    """Return the effective settings a replay states, their hash held to be theirs."""
    document = replay_document(corpus, *arguments)
    given: Json = document["settings"]
    digest = hashlib.sha256(canonical_json(given).encode("utf-8", "surrogatepass")).hexdigest()
    assert document["settings_hash"] == f"sha256:{digest}"
    return given


def config(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


WANTED: Json = {"window": 20, "warnAt": 5, "failLimit": None, "onLimit": "deny"}
WANTED_LIMITS: Json = {"host": 9, "exact": None, "host:api.example.com": 4}

FILES = {
    "a.json": """{"window": 20, "warnAt": 5, "failLimit": null, "onLimit": "deny",
        "limits": {"host": 9, "exact": null, "host:api.example.com": 4}}""",
    "b.json": """{"settings": {"window": 20.0, "warnAt": 5, "failLimit": null, "onLimit": "deny",
        "limits": {"host": 9, "exact": null, "host:api.example.com": 4}}, "other": 1}""",
    "a.toml": """
window = 20
warnAt = 5
failLimit = "null"
onLimit = "deny"
[limits]
host = 9
exact = "null"
"host:api.example.com" = 4
""",
    "b.toml": """
[settings]
window = 20
warnAt = 5
failLimit = "null"
onLimit = "deny"
limits = { host = 9, exact = "null", "host:api.example.com" = 4 }
""",
    "a.yaml": """
window: 20
warnAt: 5
failLimit: null
onLimit: deny
limits: {host: 9, exact: ~, "host:api.example.com": 4}
""",
    "cordis.patch.yml": """
- id: something-else
  config: !!js/function "() => ({ window: 4 })"
- id: repeat-tool-breaker
  config:
    window: 20
    warnAt: 5
    failLimit: null
    onLimit: deny
    limits: {host: 9, exact: null, "host:api.example.com": 4}
- !!js "remove(3)"
""",
    "inserted.yml": """
- insert:
    - id: first
      name: other
      config: {window: 8}
    - id: guard-of-mine
      name: dsh-repeat-tool-breaker
      config: {window: 20, warnAt: 5, failLimit: null, onLimit: deny,
               limits: {host: 9, exact: null, "host:api.example.com": 4}}
    - !!js "more()"
""",
    "replaced.yml": """
- id: repeat-tool-breaker
  config: {window: 99, summarizeAt: 3}
- id: repeat-tool-breaker
  config: {window: 20, warnAt: 5, failLimit: null, onLimit: deny,
           limits: {host: 9, exact: null, "host:api.example.com": 4}}
""",
}


@pytest.mark.parametrize("name", FILES)
def test_every_format_gives_the_same_settings(corpus: Path, tmp_path: Path, name: str) -> None:
    default = settings(corpus)
    given = settings(corpus, "--config", config(tmp_path, name, FILES[name]))
    assert given == {**default, **WANTED, "limits": {**default["limits"], **WANTED_LIMITS}}
    assert isinstance(given["window"], int)


@pytest.mark.parametrize("name", ["a.toml", "a.yaml", "a.json", "b.yml"])
def test_a_file_without_settings_gives_the_defaults(corpus: Path, tmp_path: Path, name: str) -> None:
    text = {"a.json": "{}", "b.yml": "- id: repeat-tool-breaker\n"}.get(name, "")
    assert settings(corpus, "--config", config(tmp_path, name, text)) == settings(corpus)


def test_a_byte_order_mark_opens_no_settings(corpus: Path, tmp_path: Path) -> None:
    marked = config(tmp_path, "a.json", '\ufeff{"window": 20}')
    assert settings(corpus, "--config", marked)["window"] == 20


@pytest.mark.parametrize(
    ("assignments", "changed"),
    [
        (["window=20"], {"window": 20}),
        (["warnAt=null", "failWarnAt=0"], {"warnAt": None, "failWarnAt": None}),
        (["onLimit=deny"], {"onLimit": "deny"}),
        (["includeLocal=true"], {"includeLocal": True}),
        (['exclude=["read","bash"]'], {"exclude": ["read", "bash"]}),
        (["window=20", "window=30"], {"window": 30}),
    ],
)
def test_set_lays_values_over_the_defaults(corpus: Path, assignments: list[str], changed: dict[str, Any]) -> None:
    given = settings(corpus, *(part for assignment in assignments for part in ("--set", assignment)))
    assert given == {**settings(corpus), **changed}


@pytest.mark.parametrize(
    ("assignment", "entry", "value"),
    [
        ("limits.host=9", "host", 9),
        ("limits.exact=null", "exact", None),
        ("limits.host:api.example.com=4", "host:api.example.com", 4),
        ("limits.net:https://x.example/?a=1&b=2=4", "net:https://x.example/?a=1&b=2", 4),
    ],
)
def test_set_reaches_one_entry_of_a_map(corpus: Path, assignment: str, entry: str, value: object) -> None:
    default = settings(corpus)
    assert settings(corpus, "--set", assignment) == {**default, "limits": {**default["limits"], entry: value}}


def test_set_stands_above_the_file(corpus: Path, tmp_path: Path) -> None:
    path = config(tmp_path, "a.toml", "window = 20\nwarnAt = 5\n[limits]\nhost = 9\ncmd = 8\n")
    given = settings(corpus, "--config", path, "--set", "warnAt=6", "--set", "limits.host=7")
    assert (given["window"], given["warnAt"], given["limits"]["host"], given["limits"]["cmd"]) == (20, 6, 7, 8)


def test_equal_settings_have_one_hash_however_they_are_given(corpus: Path, tmp_path: Path) -> None:
    path = config(tmp_path, "a.yaml", "limits: {exact: 12.0}\nwindow: 16.0\nnonsense: 1\n")
    plain = replay_document(corpus)["settings_hash"]
    told = breaker("replay", corpus, "--config", path, "--format", "json")
    assert told.stderr.count("\n") == 1
    assert f'"settings_hash": "{plain}"' in told.stdout
    assert replay_document(corpus, "--set", "window=17")["settings_hash"] != plain


@pytest.mark.parametrize(
    ("text", "key", "entry", "written"),
    [
        ("ignoreArgs: {bash: .nan}\n", "ignoreArgs", "bash", None),
        ("hostAliases: {x: .inf}\n", "hostAliases", "x", None),
    ],
)
def test_values_without_a_json_spelling_are_printed_as_javascript_writes_them(
    corpus: Path, tmp_path: Path, text: str, key: str, entry: str, written: object
) -> None:
    assert settings(corpus, "--config", config(tmp_path, "a.yaml", text))[key][entry] == written


@pytest.mark.parametrize(
    ("ruleset", "keys"),
    [
        ("0.5.2", set[str]()),
        ("0.6.1", {"blockShellHttp", "blockLocalHttp", "shellHttpAllow"}),
        ("0.8", {"blockShellHttp", "blockLocalHttp", "shellHttpBlock"}),
    ],
)
def test_each_ruleset_states_its_own_settings(corpus: Path, ruleset: str, keys: set[str]) -> None:
    given = settings(corpus, "--ruleset", ruleset)
    assert {key for key in given if "shellhttp" in key.lower() or key == "blockLocalHttp"} == keys


def refusal(path: Path, release: str) -> str | None:
    """Return why every command would refuse a settings file, None where it would not."""
    try:
        load_settings(path, None, release)
    except Failed as failure:
        return str(failure)
    return None


@pytest.mark.shared
@pytest.mark.parametrize(("release", "count"), [("0.5.2", 76), ("0.8.7", 201)])
def test_every_recorded_configuration_is_taken_or_refused_as_recorded(
    shared: Path, tmp_path: Path, release: str, count: int
) -> None:
    given = [raw_members(line) for line in vector_lines(shared, release, "settings.jsonl")]
    # What is no object reaches a host only: in a file it stands for no settings, or for a list of patches.
    rows = [row for row in given if row["config"].startswith("{")]
    differing: list[int] = []
    for number, row in enumerate(rows, 1):
        expected = json.loads(row["expect"])
        fault = refusal(config(tmp_path, "settings.json", row["config"]), release)
        if (fault is None) != expected["ok"] or (fault is not None and expected["names"] not in fault):
            differing.append(number)
    assert differing == []
    assert len(rows) == count


def test_a_limit_for_no_kind_of_measure_is_a_warning_that_names_the_nearest(tmp_path: Path) -> None:
    LogWriter().write(tmp_path / "sessions")
    done = breaker("replay", tmp_path / "sessions", "--set", "limits.hosst=3", "--set", "limits.net:a.com/=3")
    assert done.returncode == 0
    assert done.stderr == (
        "breaker: warning: `limits.hosst` caps nothing: there is no such kind of measure; did you mean `limits.host`?\n"
    )
