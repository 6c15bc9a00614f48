"""`--cache` and `breaker cache`: byte for byte what there is without, and no file that is not the cache's own."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest
import zstandard

from analysis.synth import write_corpus
from cli.sizes import size_text
from tests.analysis.logs import LogWriter
from tests.cli.commands import COMMAND, PATIENCE, Ran, breaker, breaker_process, violations

CHECK = "[check]\nsessions = ['corpus']\n[check.limits]\nwarn = 0\ngate = 99\n"
COMMANDS: dict[str, tuple[str, ...]] = {
    "json": ("replay", "corpus", "--format", "json", "--events"),
    "jsonl": ("replay", "corpus", "--format", "jsonl"),
    "text": ("replay", "corpus", "--events"),
    "messages": ("replay", "corpus", "--format", "json", "--messages"),
    "detector": ("replay", "corpus", "--format", "json", "--detector", "fail-guard", "--events"),
    "source": ("replay", "corpus", "--format", "json", "--result-source", "log"),
    "period": ("replay", "corpus", "--format", "json", "--since", "2026-01-01", "--until", "2027-01-01"),
    "export": ("export", "corpus", "--out", "out/tables", "--privacy", "full"),
    "part": ("export", "corpus", "--out", "out/part", "--tables", "sessions,events,measures,streaks,histogram"),
    "histogram": ("histogram", "corpus", "--format", "json"),
    "report": ("report", "corpus", "--format", "json"),
    "compare": ("compare", "corpus", "--a", "warnAt=3", "--b", "policy=approve", "--format", "json"),
    "lint": ("lint", "corpus", "--format", "json"),
    "sweep": ("sweep", "corpus", "--grid", "warnAt=2..4", "--grid", "limits.host=3,9,null", "--format", "json"),
    "rulesets": ("sweep", "corpus", "--grid", "ruleset=0.5.0,0.8", "--label", "good=*a*", "--format", "json"),
    "check": ("check", "--report", "json", "--report", "junit=out/junit.xml", "--today", "2026-01-01"),
    "approve": ("approve", "--baseline", "out/baseline.json"),
}


@pytest.fixture(scope="module")
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return a folder with a corpus, some of it packed, and a check of it; the tests stand in it."""
    folder = tmp_path_factory.mktemp("place")
    recipe: str = request.param
    write_corpus(folder / "corpus", recipe, sessions=8 if recipe == "labelled" else None)
    packed = LogWriter("session-packed")
    for _ in range(9):
        packed.bash("make", "\ud800 no\n[exit code: 1]")
    packed.write(folder / "packed")
    shutil.make_archive(str(folder / "corpus" / "packed"), "zip", folder / "packed")
    (folder / "corpus" / "session.jsonl").write_text("no header\n")
    (folder / "breaker.toml").write_text(CHECK, encoding="utf-8")
    before = Path.cwd()
    os.chdir(folder)
    yield folder
    os.chdir(before)


def ran(*arguments: str) -> tuple[int, str, str, dict[str, bytes]]:
    """Run a command; return what it says and the files it writes."""
    shutil.rmtree("out", ignore_errors=True)
    Path("out").mkdir()
    done = breaker(*arguments)
    files = {str(path): path.read_bytes() for path in sorted(Path("out").rglob("*")) if path.is_file()}
    return done.returncode, done.stdout, done.stderr, {name: _lasting(name, data) for name, data in files.items()}


def _lasting(name: str, data: bytes) -> bytes:
    """Leave out when a run was."""
    if not name.endswith("manifest.json"):
        return data
    manifest = json.loads(data)
    manifest.pop("created", None)
    return json.dumps(manifest).encode()


@pytest.mark.parametrize(
    ("place", "name"),
    [*(("demo", name) for name in COMMANDS), *(("labelled", name) for name in ("json", "export", "sweep", "check"))],
    indirect=["place"],
)
def test_cold_cached_and_without_are_the_same_to_the_byte(place: Path, tmp_path: Path, name: str) -> None:
    arguments = COMMANDS[name]
    cache = ("--cache", str(tmp_path / "cache"))
    plain = ran(*arguments, "--cache", "off")
    assert plain[0] in {0, 1}, plain
    assert "Traceback" not in plain[2]
    assert not (tmp_path / "cache").exists()
    for _ in range(2):
        assert ran(*arguments, *cache) == plain
        assert any((tmp_path / "cache").rglob("*.facts"))


@pytest.mark.parametrize("place", ["demo"], indirect=True)
@pytest.mark.parametrize("name", ["json", "part", "histogram", "sweep"])
def test_several_processes_are_the_same_to_the_byte(place: Path, tmp_path: Path, name: str) -> None:
    def process(*more: str) -> tuple[int, bytes, dict[str, bytes]]:
        out = place / "out"
        shutil.rmtree(out, ignore_errors=True)
        done = breaker_process(*COMMANDS[name], *more)
        files = {path.name: _lasting(path.name, path.read_bytes()) for path in sorted(out.rglob("*.*"))}
        return done.returncode, done.stdout.encode(), files

    plain = process("--cache", "off", "--jobs", "1")
    assert plain[0] == 0
    for jobs in ("2", "1", "2"):
        assert process("--cache", str(tmp_path / "cache"), "--jobs", jobs) == plain


@pytest.mark.parametrize("place", ["demo"], indirect=True)
def test_the_order_of_the_paths_and_where_they_lie_are_told_anew(place: Path, tmp_path: Path) -> None:
    folders = sorted({str(path.parent) for path in Path("corpus").rglob("session*.zstd")})
    cache = ("--cache", str(tmp_path / "cache"))
    breaker("replay", *folders, *cache)
    for paths in (folders[::-1], folders[3:] + folders[:3]):
        assert ran("replay", *paths, "--format", "json", *cache) == ran(
            "replay", *paths, "--format", "json", "--cache", "off"
        )
    shutil.copytree("corpus", tmp_path / "elsewhere")
    told = ran("replay", str(tmp_path / "elsewhere"), "--format", "json", *cache)
    assert told == ran("replay", str(tmp_path / "elsewhere"), "--format", "json", "--cache", "off")
    assert {row["path"].startswith(str(tmp_path)) for row in json.loads(told[1])["sessions"]} == {True}


@pytest.mark.parametrize("place", ["demo"], indirect=True)
def test_an_export_is_run_again_with_a_cache(place: Path, tmp_path: Path) -> None:
    breaker("export", "corpus", "--out", str(tmp_path / "tables"), "--privacy", "full")
    given = ("reproduce", str(tmp_path / "tables" / "manifest.json"), "--cache", str(tmp_path / "cache"))
    for _ in range(2):
        done = breaker(*given)
        assert (done.returncode, done.stderr) == (0, "")
    assert any((tmp_path / "cache").rglob("*.facts"))


# Where it lies


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        log = LogWriter(f"session-{name}")
        log.user()
        log.bash()
        log.write(tmp_path / "corpus")
    return tmp_path / "corpus"


def replayed(corpus: Path, *more: str) -> Ran:
    return breaker("replay", corpus, "--format", "json", *more)


def test_the_variable_is_the_default_of_the_option(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("BREAKER_CACHE", str(tmp_path / "variable"))
    assert replayed(corpus, "--cache", "off").returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]
    assert replayed(corpus).returncode == 0
    assert replayed(corpus, "--cache", str(tmp_path / "option")).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "option", "variable"]
    monkeypatch.setenv("BREAKER_CACHE", "off")
    assert replayed(corpus).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "option", "variable"]
    monkeypatch.setenv("BREAKER_CACHE", "")
    assert replayed(corpus).returncode == 0
    monkeypatch.delenv("BREAKER_CACHE")
    assert replayed(corpus).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus", "option", "variable", "xdg"]
    assert [path.name for path in (tmp_path / "xdg" / "breaker").iterdir()] == ["v1"]


def test_without_a_home_there_is_no_cache_and_no_word_of_it(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BREAKER_CACHE", "HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    done = replayed(corpus)
    assert (done.returncode, done.stderr, sorted(path.name for path in tmp_path.iterdir())) == (0, "", ["corpus"])


def test_an_unsafe_default_is_not_used_and_said_so(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BREAKER_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    folder = tmp_path / "xdg" / "breaker"
    folder.mkdir(parents=True)
    folder.chmod(0o777)
    done = replayed(corpus)
    told = f"breaker: warning: the cache is not used: {folder}: can be written by other users\n"
    assert (done.returncode, done.stderr, list(folder.iterdir())) == (0, told, [])
    assert done.stdout == replayed(corpus, "--cache", "off").stdout


@pytest.mark.parametrize("verb", ["replay", "sweep", "export", "compare", "check"])
def test_a_file_or_a_folder_of_the_corpus_is_refused(corpus: Path, tmp_path: Path, verb: str) -> None:
    (tmp_path / "breaker.toml").write_text("[check]\nsessions = ['corpus']\n[check.limits]\nwarn = 0\n")
    more = {
        "sweep": ("--grid", "warnAt=2,3"),
        "export": ("--out", str(tmp_path / "out")),
        "compare": ("--a", "warnAt=3", "--b", "warnAt=4"),
        "check": ("--config", str(tmp_path / "breaker.toml")),
    }.get(verb, ())
    file = tmp_path / "file"
    file.write_text("mine")
    inside = corpus / "cache"
    for given, why in (
        (file, "is not a folder"),
        (inside, f"lies inside the corpus {corpus}; results are never written among recorded sessions"),
        (tmp_path, f"the corpus {corpus} lies in it; a cache has a folder of its own"),
    ):
        done = breaker(verb, str(corpus), *more, "--cache", str(given))
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"breaker: error: --cache {given}: {why}\n"
    assert (file.read_text(), inside.exists()) == ("mine", False)


def test_what_cannot_be_written_is_one_warning_and_changes_nothing(corpus: Path, tmp_path: Path) -> None:
    def fill() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    given = [str(COMMAND), "replay", str(corpus), "--format", "json", "--cache"]
    plain = subprocess.run([*given, "off"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    full = subprocess.run(
        [*given, str(tmp_path / "cache")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        preexec_fn=fill,
    )
    told = f"breaker: warning: the cache {tmp_path / 'cache'} cannot be written: File too large\n"
    assert (full.returncode, full.stdout, full.stderr) == (0, plain.stdout, told)
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


def test_two_runs_at_once_on_one_folder(corpus: Path, tmp_path: Path) -> None:
    given = [str(COMMAND), "replay", str(corpus), "--format", "json", "--cache", str(tmp_path / "cache")]
    plain = replayed(corpus, "--cache", "off").stdout
    both = [subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert (*process.communicate(timeout=PATIENCE), process.returncode) == (plain, "", 0)


# breaker cache


def entries(told: str) -> int:
    return int(told.split(" ", 1)[0].split("\n")[-1])


def test_info_tells_what_is_there(corpus: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    empty = breaker("cache", "info", "--cache", cache, "--format", "json")
    assert (empty.returncode, cache.exists()) == (0, False)
    document = json.loads(empty.stdout)
    assert violations("cache", document) == []
    assert (document["entries"], document["bytes"], document["oldest_use"]) == (0, 0, None)
    replayed(corpus, "--cache", str(cache))
    breaker("sweep", corpus, "--grid", "warnAt=2,3", "--cache", cache)
    document = json.loads(breaker("cache", "info", "--cache", cache, "--format", "json").stdout)
    assert violations("cache", document) == []
    files = [path for path in cache.rglob("*.*") if path.suffix != ".lock"]
    kinds = {name: kind["entries"] for name, kind in document["kinds"].items()}
    assert kinds == {name: len(list(cache.rglob(f"*.{name}"))) for name in ("facts", "replay", "sweep", "seen")}
    assert (kinds["facts"], kinds["replay"], kinds["sweep"]) == (2, 2, 2)
    assert document["bytes"] == sum(max(path.stat().st_size, path.stat().st_blocks * 512) for path in files)
    assert document["folder"] == str(cache)
    assert document["oldest_use"] <= document["newest_use"]
    text = breaker("cache", "info", "--cache", cache).stdout
    assert text.startswith(f"{cache}\n{document['entries']} entries, {size_text(document['bytes'])} of 2.0 GiB\n")


def test_prune_and_clear_tell_what_they_removed_and_leave_the_rest_alone(corpus: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    replayed(corpus, "--cache", str(cache))
    (cache / "notes.txt").write_text("mine")
    for path in cache.rglob("*.facts"):
        os.utime(path, (0, 0))
    done = breaker("cache", "prune", "--older-than", "30d", "--cache", cache)
    assert (done.returncode, done.stdout.startswith("2 entries removed, ")) == (0, True)
    assert breaker("cache", "prune", "--max-size", "1GB", "--cache", cache).stdout == "0 entries removed, 0 bytes\n"
    assert breaker("cache", "prune", "--max-size", "0", "--cache", cache).stdout.startswith("2 entries removed, ")
    replayed(corpus, "--cache", str(cache))
    assert breaker("cache", "clear", "--cache", cache).stdout.startswith("4 entries removed, ")
    assert [path.name for path in cache.rglob("*")] == ["notes.txt"]
    assert breaker("cache", "clear", "--cache", cache).stdout == "0 entries removed, 0 bytes\n"


@pytest.mark.parametrize("verb", ["prune", "clear"])
def test_a_mistyped_folder_does_not_look_emptied(tmp_path: Path, verb: str) -> None:
    done = breaker("cache", verb, "--cache", tmp_path / "cahce")
    assert (done.returncode, done.stderr) == (2, f"breaker: error: --cache {tmp_path / 'cahce'}: no such folder\n")


def test_the_variable_is_named_where_it_is_at_fault(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    monkeypatch.setenv("BREAKER_CACHE", str(file))
    done = breaker("replay", corpus)
    assert (done.returncode, done.stderr) == (2, f"breaker: error: BREAKER_CACHE {file}: is not a folder\n")


@pytest.mark.parametrize("word", ["off", "OFF", "Off"])
def test_off_is_off_however_it_is_written(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert breaker("replay", corpus, "--cache", word).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


@pytest.mark.parametrize(
    ("size", "told"), [(0, "0 bytes"), (1, "1 byte"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (2**31, "2.0 GiB")]
)
def test_sizes_are_told_in_the_unit_they_are_best_read_in(size: int, told: str) -> None:
    assert size_text(size) == told


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("info", "--cache", "off"), "there is no cache: it is off, or nothing says where it would be"),
        (("clear", "--cache", "{file}"), "--cache {file}: is not a folder"),
        (
            ("prune", "--max-size", "lots"),
            "--max-size lots: not a size (a whole number, with KB, MB, GB, KiB, MiB or GiB for more than bytes)",
        ),
        (("prune", "--older-than", "30"), "--older-than 30: not an age (a whole number with s, m, h, d or w)"),
    ],
)
def test_what_is_asked_wrongly_is_a_usage_error(tmp_path: Path, arguments: tuple[str, ...], why: str) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    done = breaker("cache", *(argument.replace("{file}", str(file)) for argument in arguments))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"breaker: error: {why.replace('{file}', str(file))}\n"
    assert file.read_text() == "mine"


def test_without_a_verb_the_help_is_shown() -> None:
    done = breaker("cache")
    assert (done.returncode, done.stdout) == (2, "")
    assert "prune" in done.stderr


def test_entries_behind_a_link_are_refused(corpus: Path, tmp_path: Path) -> None:
    cache, elsewhere = tmp_path / "cache", tmp_path / "elsewhere"
    cache.mkdir()
    elsewhere.mkdir()
    (cache / "v1").symlink_to(elsewhere)
    done = breaker("replay", corpus, "--cache", cache)
    told = "what it keeps lies behind a symbolic link, where nothing would bound it"
    assert (done.returncode, done.stderr) == (2, f"breaker: error: --cache {cache}: {told}\n")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("order", [1, -1])
def test_one_file_under_two_names_is_looked_at_by_each(tmp_path: Path, order: int) -> None:
    log = LogWriter("session-a")
    log.user()
    log.bash()
    frames = [zstandard.ZstdCompressor().compress(line + b"\n") for line in log.text.splitlines()]
    packed = tmp_path / "packed" / "s" / "session.v4.jsonl.zstd"
    plain = tmp_path / "plain" / "s" / "session.v4.jsonl"
    packed.parent.mkdir(parents=True)
    plain.parent.mkdir(parents=True)
    packed.write_bytes(b"junkjunk\n" + b"".join(frames))
    os.link(packed, plain)
    told: list[tuple[int, str]] = []
    with patch("analysis.cache.keys._SETTLED_AFTER", -(10**18)):  # as if nothing had been written for long
        for folder in (packed.parent, plain.parent)[::order]:
            given = ("replay", folder, "--since", "2030-01-01")
            cached = breaker(*given, "--cache", tmp_path / "cache")
            without = breaker(*given, "--cache", "off")
            assert (cached.returncode, cached.stderr) == (without.returncode, without.stderr)
            told.append((cached.returncode, cached.stderr))
    assert told[0] != told[1]
