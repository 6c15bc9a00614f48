"""Which processes are started before the arguments are parsed, and that all of them end."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
import typer
from typer.core import TyperGroup

from analysis.cache import CACHE_VARIABLE
from analysis.cache import OFF as OFF_WORD
from cli import cache_names
from cli.app import VERBS, build_app
from cli.early import VERBS_THAT_READ, processes_asked_for
from tests.cli.commands import breaker
from tests.cli.hooks import STOP, Hook, started

OFF = {"BREAKER_CACHE": "off"}


@pytest.mark.parametrize(
    ("arguments", "environ", "count"),
    [
        ("replay x --jobs 2 --cache off", {}, 2),
        ("replay x --jobs=3 --cache=OFF", {}, 3),
        ("--jobs 2 replay x", OFF, 0),
        ("sweep x --grid warnAt=2 --jobs 2", OFF, 2),
        ("replay x --jobs 2 --jobs 4", OFF, 4),
        ("replay x --jobs 2 --cache off --cache folder", {}, 0),
        ("replay x --jobs 2 --cache folder", OFF, 0),
        ("replay x --jobs 2", {}, 0),
        ("replay x --jobs 1", OFF, 0),
        ("replay x --jobs 0", OFF, 0),
        ("replay x --jobs -3", OFF, 0),
        ("replay x --jobs ٣", OFF, 0),
        ("replay x --jobs 9999", OFF, 0),
        ("replay x --jobs auto", OFF, 0),
        ("replay x --jobs", OFF, 0),
        ("replay x", OFF, 0),
        ("replay x --jobs 2 --help", OFF, 0),
        ("guard --jobs 2", OFF, 0),
        ("--version --jobs 2", OFF, 0),
        ("", OFF, 0),
    ],
)
def test_as_many_as_are_asked_for_by_number_where_no_cache_may_make_them_needless(
    arguments: str, environ: dict[str, str], count: int
) -> None:
    assert processes_asked_for(arguments.split(), environ) == count


def test_the_verbs_are_those_with_both_options() -> None:
    having: set[str] = set()
    for verb in VERBS:
        command = typer.main.get_command(build_app(verb))
        context = command.make_context("breaker", [verb], resilient_parsing=True)
        chosen = command.get_command(context, verb) if isinstance(command, TyperGroup) else None
        assert chosen is not None
        if {"jobs", "cache"} <= {parameter.name for parameter in chosen.params}:
            having.add(verb)
    assert having - {"lint"} == VERBS_THAT_READ, "without sessions lint reads none"


def test_the_words_that_choose_the_cache_are_the_cache_s_own() -> None:
    assert cache_names.CACHE_VARIABLE == CACHE_VARIABLE
    assert cache_names.is_off(OFF_WORD)


def test_a_verb_has_no_option_that_does_nothing_for_it() -> None:
    for verb, told in (("doctor", "--jobs"), ("lint", "sessions)]")):
        assert told not in breaker(verb, "--help").stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_before_anything_is_parsed(tmp_path: Path, number: signal.Signals) -> None:
    words = ("replay", tmp_path / "nowhere", "--jobs", "2", "--cache", "off")
    with started(*words, hook=Hook(STOP, "/typer/", "main"), folder=tmp_path / "hook") as run:
        run.wait_until_reached()
        assert len(run.others()) == min(2, len(os.sched_getaffinity(0)))
        run.process.send_signal(number)
        done = run.end()
    assert done.returncode == (130 if number == signal.SIGINT else -number)
    assert done.stdout == ""


def test_those_no_work_comes_for_are_ended(tmp_path: Path) -> None:
    words = ("replay", tmp_path / "nowhere", "--jobs", "2", "--cache", "off")
    with started(*words, hook=Hook(STOP, "never", "main"), folder=tmp_path / "hook") as run:
        done = run.end()
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"breaker: error: {tmp_path}/nowhere: no such file or folder\n"
