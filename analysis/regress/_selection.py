"""Which sessions a check is about, known before any of them is replayed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from glob import has_magic
from pathlib import Path

from analysis.corpus import CorpusReplay
from analysis.labels import Label, LabelConflict, LabelRules
from analysis.regress._changes import Changes
from analysis.regress._config import CheckConfig
from analysis.regress._faults import CheckError, shown
from analysis.replay import ReplayPlan
from analysis.sessions.find import PathMissing, Problem, SessionFile, find_sessions
from analysis.sessions.header import read_header

__all__ = ["KnownSession", "Selection", "Unit", "join", "select"]


@dataclass(frozen=True, slots=True)
class KnownSession:
    """A session by its header alone."""

    session_id: str | None
    """None where the header cannot be read."""
    path: str
    name: str
    """The id, else the name of its folder."""
    label: Label


@dataclass(frozen=True, slots=True)
class Unit:
    """Logs that must be replayed together: generations and copies of the same sessions, members of one archive."""

    files: tuple[SessionFile, ...]
    sessions: tuple[KnownSession, ...]

    @property
    def paths(self) -> list[Path]:
        """What to replay."""
        return list(dict.fromkeys(file.path for file in self.files))

    def changed(self, changes: Changes) -> bool:
        """Tell whether a log of it may differ, or one of its older or newer generations has gone."""
        return any(
            changes.touches(file.path)
            or (file.generation is not None and file.member is None and changes.touches_folder(file.path.parent))
            for file in self.files
        )


@dataclass(frozen=True, slots=True)
class Selection:
    """The sessions found under the roots of a check."""

    roots: tuple[Path, ...]
    unmatched: tuple[str, ...]
    """Globs and folders, as written, without a session."""
    logs: Mapping[str, frozenset[str]]
    """By what was written: the logs it leads to."""
    units: tuple[Unit, ...]
    order: tuple[str, ...]
    """Every log, in the order it was found."""
    problems: tuple[Problem, ...]
    labels: LabelRules

    @property
    def sessions(self) -> list[KnownSession]:
        """Every session, in the order of the units."""
        return [session for unit in self.units for session in unit.sessions]


def select(config: CheckConfig, paths: Sequence[str] | None) -> Selection:
    """Find the sessions of a check.

    Args:
        config: the check; its own paths are relative to its folder.
        paths: other paths or globs, relative to the working folder.

    Raises:
        CheckError: no paths are configured, one does not exist, or two labels contradict each other.
    """
    folder = config.folder if paths is None else Path.cwd()
    written = config.sessions if paths is None else paths
    if not written:
        message = f"{shown(config.path)}: no sessions: name them in `sessions`, or on the command line"
        raise CheckError(message)
    roots: list[Path] = []
    logs: dict[str, frozenset[str]] = {}
    for text in written:
        found = _expand(text, folder)
        try:
            logs[text] = frozenset(file.shown for file in find_sessions(found).files) if found else frozenset()
        except PathMissing as error:
            raise CheckError(str(error)) from None
        roots += found
    search = find_sessions(roots)
    labels = LabelRules(config.labels)
    try:
        units = _units(search.files, labels)
    except LabelConflict as error:
        raise CheckError(str(error)) from None
    return Selection(
        roots=tuple(roots),
        unmatched=tuple(text for text, files in logs.items() if not files),
        logs=logs,
        units=units,
        order=tuple(file.shown for file in search.files),
        problems=search.problems,
        labels=labels,
    )


def _expand(text: str, folder: Path) -> list[Path]:
    """Return the paths a text stands for: itself, or what it matches where it is a glob and no such path exists."""
    path = folder / text
    shortest = path if Path(text).is_absolute() or folder != Path.cwd() else Path(text)
    if not has_magic(text) or path.exists():
        return [Path(shown(shortest)) if shortest.is_absolute() else shortest]
    top = Path(path.anchor) if path.anchor else Path()
    try:
        return [Path(shown(found)) for found in sorted(top.glob(str(path.relative_to(top))))]
    except (ValueError, NotImplementedError) as error:
        message = f"{text}: bad glob: {error}"
        raise CheckError(message) from None


def _units(files: Sequence[SessionFile], labels: LabelRules) -> tuple[Unit, ...]:
    """Group logs that share a folder, an archive or a session id."""
    known: dict[str, KnownSession] = {}
    group_of: dict[str, int] = {}
    groups: dict[int, list[SessionFile]] = {}
    for number, file in enumerate(files):
        keys = [f"path:{file.path}", f"folder:{file.folder}"]
        if file.superseded_by is None:
            header = read_header(file)
            session_id = header.session_id if header is not None else None
            if session_id is not None:
                keys.append(f"id:{session_id}")
            name = session_id or Path(file.folder).name
            known[file.shown] = KnownSession(session_id, file.shown, name, labels.label_of(session_id, file.shown))
        joined = sorted({group_of[key] for key in keys if key in group_of})
        target = joined[0] if joined else number
        groups.setdefault(target, []).append(file)
        for other in joined[1:]:
            groups[target] += groups.pop(other)
            group_of = {key: target if group == other else group for key, group in group_of.items()}
        group_of.update(dict.fromkeys(keys, target))
    return tuple(
        Unit(tuple(members), tuple(known[file.shown] for file in members if file.shown in known))
        for _, members in sorted(groups.items())
    )


def join(parts: Iterable[CorpusReplay], selection: Selection, plan: ReplayPlan) -> CorpusReplay:
    """Put replays of units together as if they had been one."""
    place = {path: number for number, path in enumerate(selection.order)}
    replays = list(parts)
    return CorpusReplay(
        plan=plan,
        roots=tuple(map(str, selection.roots)),
        sessions=tuple(sorted((row for one in replays for row in one.sessions), key=lambda row: place[row.path])),
        reports=tuple(sorted((report for one in replays for report in one.reports), key=lambda one: place[one.shown])),
        problems=selection.problems,
        filtered=0,
        warnings=(),
    )
