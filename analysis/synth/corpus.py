"""Write a planted corpus to a folder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeGuard

import msgspec

from analysis.synth.errors import InvalidSizeError, OutputNotEmptyError, UnknownRecipeError
from analysis.synth.log import VERSIONS, Version, encode, log_path, write_atomically
from analysis.synth.recipes import EPOCH, RECIPES, Corpus
from analysis.synth.scale import DEFAULT_CALLS, DEFAULT_RESULT_BYTES, SCALE_SETTINGS, write_scale
from analysis.synth.truth import SETTINGS, PlantedFile, SessionTruth, Truth

if TYPE_CHECKING:
    from pathlib import Path

    from analysis.synth.recipes import Recipe
    from analysis.synth.run import Run

TRUTH_NAME: Final = "truth.json"
"""The file beside the sessions that states what is planted."""

_SESSION_FILE: Final = re.compile(r"session(\.v\d+)?\.jsonl(\.zstd)?")


def write_corpus(
    out: Path,
    recipe: str,
    *,
    sessions: int | None = None,
    seed: int = 0,
    version: int = 4,
    plain: bool = False,
    force: bool = False,
    calls: int | None = None,
    result_bytes: int | None = None,
) -> Truth:
    """Write the sessions of a recipe below `out` as the harness would, and `truth.json` beside them.

    `sessions` is how many (recipes of a fixed size take only theirs); `calls` per session and `result_bytes` per call
    belong to the recipe `scale`. The same arguments give the same bytes. With `force` a folder that is not empty is
    used too: the sessions an earlier corpus left there are removed, anything else stays. Raises UnknownRecipeError,
    InvalidSizeError and OutputNotEmptyError before anything is written; an OSError on the way leaves whole files
    only, and no `truth.json`.
    """
    chosen = RECIPES.get(recipe)
    if chosen is None:
        raise UnknownRecipeError(recipe, RECIPES)
    if not _is_version(version):
        raise InvalidSizeError("version", version, f"must be one of {', '.join(map(str, VERSIONS))}")
    count = _count(chosen, sessions)
    large = recipe == "scale"
    for name, value in (("calls", calls), ("result_bytes", result_bytes)):
        if value is not None and (value < 1 or not large):
            raise InvalidSizeError(name, value, "must be at least 1" if large else "belongs to the recipe scale")
    _prepare(out, force=force)
    if large:
        truths = write_scale(
            out,
            count,
            seed,
            version,
            plain=plain,
            calls=calls or DEFAULT_CALLS,
            result_bytes=result_bytes or DEFAULT_RESULT_BYTES,
            epoch=EPOCH,
        )
        truth = Truth(recipe, seed, version, plain, SCALE_SETTINGS, truths)
    else:
        corpus = Corpus(recipe, seed, count)
        chosen.plan(corpus)
        truths = tuple(_write_session(out, run, version, plain=plain) for run in corpus.runs)
        truth = Truth(recipe, seed, version, plain, SETTINGS, truths, corpus.best)
    content = msgspec.json.format(msgspec.json.encode(truth.to_json()), indent=1) + b"\n"
    write_atomically(out / TRUTH_NAME, (content,))
    return truth


def _count(recipe: Recipe, sessions: int | None) -> int:
    if sessions is None:
        return recipe.usual
    if recipe.fixed and sessions != recipe.usual:
        raise InvalidSizeError(
            "sessions", sessions, f"must be {recipe.usual} for the recipe {recipe.name}, or not given"
        )
    if sessions < recipe.fewest:
        raise InvalidSizeError("sessions", sessions, f"must be at least {recipe.fewest} for the recipe {recipe.name}")
    return sessions


def _is_version(version: int) -> TypeGuard[Version]:
    return version in VERSIONS


def _prepare(out: Path, *, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise OutputNotEmptyError(out, "is a file, not a folder")
    if out.is_dir() and any(out.iterdir()):
        if not force:
            raise OutputNotEmptyError(out, "is not empty: choose another folder, or force it")
        _remove_earlier(out)


class _OldFile(msgspec.Struct):
    path: str


class _OldSession(msgspec.Struct):
    files: list[_OldFile]


class _OldTruth(msgspec.Struct):
    sessions: list[_OldSession]


def _remove_earlier(out: Path) -> None:
    """Remove the session files an earlier truth names; they must lie below `out` and bear a session file's name."""
    truth = out / TRUTH_NAME
    try:
        old = msgspec.json.decode(truth.read_bytes(), type=_OldTruth)
    except (FileNotFoundError, msgspec.DecodeError):
        return
    truth.unlink()
    root = out.resolve()
    for session in old.sessions:
        for file in session.files:
            path = (out / file.path).resolve()
            if path.is_relative_to(root) and _SESSION_FILE.fullmatch(path.name):
                path.unlink(missing_ok=True)
                for folder in (path.parent, path.parent.parent):
                    if folder != root and folder.is_relative_to(root) and folder.is_dir() and not any(folder.iterdir()):
                        folder.rmdir()


def _write_session(out: Path, run: Run, version: Version, *, plain: bool) -> SessionTruth:
    rendered = run.log.render(version)
    path = log_path(out, run.log.header, version, plain=plain)
    write_atomically(path, encode(rendered, plain=plain, torn=run.torn))
    files = [PlantedFile(path.relative_to(out).as_posix(), "torn" if run.torn else "ok")]
    older: Version | None = next((other for other in VERSIONS if other < version), None)
    if run.older_generation is not None and older is not None:
        past = log_path(out, run.log.header, older, plain=plain)
        write_atomically(past, encode(run.older_generation.render(older), plain=plain))
        files.append(PlantedFile(past.relative_to(out).as_posix(), "superseded"))
    return run.truth(tuple(files), rendered.seqs)
