"""Find session logs under any mix of folders, files and exported archives."""

import os
import re
import stat
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["Found", "PathMissing", "Problem", "SessionFile", "default_root", "find_sessions"]

# The generation is bounded only because a name inside an archive can have more digits than an integer takes.
_LOG_NAME: Final = re.compile(r"session(?:\.v([1-9][0-9]{0,17}))?\.jsonl(\.zstd)?", re.ASCII)
_COMPRESSED_SUFFIXES: Final = (".zstd", ".zst")
_ARCHIVE_SUFFIX: Final = ".zip"
_ARCHIVE_MAGICS: Final = (b"PK\x03\x04", b"PK\x05\x06")
_LINKS_SAY_SO: Final = os.name == "posix"
_HOME_VARIABLE: Final = "DSH_HOME"
_HOME_FOLDER: Final = ".dsh"
_SESSIONS_FOLDER: Final = "sessions"


class SessionFile(msgspec.Struct, frozen=True):
    """Name one log file, on disk or inside an archive.

    `size` is in bytes: what the file takes on disk; for a member of an archive, its own (unpacked) size as the
    archive states it. `folder` tells sessions apart: all generations in one folder are one session. A file named
    explicitly whose name is not a session log's has no generation and is a session of its own.
    """

    path: Path
    member: str | None
    shown: str
    folder: str
    generation: int | None
    compressed: bool
    size: int
    superseded_by: str | None
    note: str | None


class Problem(msgspec.Struct, frozen=True):
    """Say why something met during the search could not be looked into."""

    shown: str
    message: str


class Found(msgspec.Struct, frozen=True):
    """Hold what a search gave: every log, superseded ones too, and what could not be looked into."""

    files: tuple[SessionFile, ...]
    problems: tuple[Problem, ...]


class PathMissing(Exception):
    """Report a given path that does not exist."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{_shown(path)}: no such file or folder")
        self.path: Path = path


def default_root(environ: Mapping[str, str], home: Path) -> Path:
    r"""Tell where the harness keeps its sessions: `$DSH_HOME/sessions`, else `~/.dsh/sessions`.

    A variable that is empty or only white space counts as unset. A leading `~`, `~/` or `~\` is `home`.
    """
    value = environ.get(_HOME_VARIABLE, "")
    if not value.strip():
        base = home / _HOME_FOLDER
    elif value == "~":
        base = home
    elif value.startswith(("~/", "~\\")):
        base = home / value[1:].lstrip("/\\")
    else:
        base = Path(value)
    return base / _SESSIONS_FOLDER


def find_sessions(paths: Sequence[Path]) -> Found:
    """Find every session log in `paths`: files, archives, and folders at any depth.

    Files come in the order of `paths`, within one path sorted by `shown`; a file reached twice counts where it is
    reached first. Per folder the numerically highest generation is chosen and, of one generation in both encodings,
    the compressed one; the others are kept with `superseded_by` set. Only regular files are ever opened, each folder
    is walked once, and what cannot be looked into becomes a `Problem`. Raises `PathMissing`, before anything is
    walked, when one of `paths` does not exist.
    """
    for path in paths:
        _require(path)
    search = _Search()
    for path in paths:
        search.add(path)
    return Found(_choose(search.files), tuple(search.problems))


def _require(path: Path) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise PathMissing(path) from error
    except OSError:
        # It exists but cannot be looked at: the search itself reports that.
        return


class _Entry(msgspec.Struct, frozen=True):
    """Pair a log with the identity of its folder, by which generations are grouped."""

    file: SessionFile
    group: tuple[str, ...]


class _Search:
    """Collect logs; remember what was seen so that nothing counts twice."""

    def __init__(self) -> None:
        self.files: list[_Entry] = []
        self.problems: list[Problem] = []
        self._seen_files: set[str] = set()
        self._seen_folders: set[tuple[int, int] | str] = set()
        self._batch: list[_Entry] = []

    def add(self, path: Path) -> None:
        """Search one given path and append what it holds, sorted."""
        self._batch = []
        first_problem = len(self.problems)
        try:
            status = path.stat()
        except OSError as error:
            self._problem(path, f"cannot be looked at: {_reason(error)}")
            return
        if stat.S_ISDIR(status.st_mode):
            self._walk(path)
        elif not stat.S_ISREG(status.st_mode):
            self._problem(path, "is not a regular file")
        elif self._is_archive(path):
            self._open_archive(path, os.path.realpath(path))
        else:
            self._add_file(path, os.path.realpath(path), os.path.realpath(path.parent), status.st_size)
        self.problems[first_problem:] = sorted(self.problems[first_problem:], key=lambda problem: problem.shown)
        self.files.extend(sorted(self._batch, key=lambda entry: entry.file.shown))

    def _walk(self, top: Path) -> None:
        # Folders and files reached through a symbolic link wait until the rest is done, so that a log reached
        # both ways is named by its own path whatever the names are.
        waiting = [(top, os.path.realpath(top))]
        linked_folders: list[Path] = []
        linked_files: list[Path] = []
        while waiting or linked_files or linked_folders:
            if waiting:
                self._scan(*waiting.pop(), waiting, linked_folders, linked_files)
            elif linked_files:
                for path in sorted(linked_files):
                    self._add_walked(path, os.path.realpath(path), os.path.realpath(path.parent))
                linked_files.clear()
            else:
                linked_folders.sort(reverse=True)
                folder = linked_folders.pop()
                waiting.append((folder, os.path.realpath(folder)))

    def _scan(
        self,
        folder: Path,
        real: str,
        folders: list[tuple[Path, str]],
        linked_folders: list[Path],
        linked_files: list[Path],
    ) -> None:
        inner: list[tuple[Path, str]] = []
        try:
            if not self._is_new_folder(folder):
                return
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._problem(folder, f"the folder cannot be listed: {_reason(error)}")
            return
        for entry in entries:
            path = folder / entry.name
            try:
                link = entry.is_symlink()
                is_folder = entry.is_dir()
            except OSError as error:
                self._problem(path, f"cannot be looked at: {_reason(error)}")
                continue
            # Finding out what a path leads to looks at every folder above it; without a link it is known already.
            # Elsewhere there are links that do not say so.
            beneath = os.path.join(real, entry.name) if _LINKS_SAY_SO else os.path.realpath(path)  # noqa: PTH118
            if is_folder and link:
                linked_folders.append(path)
            elif is_folder:
                inner.append((path, beneath))
            elif _is_candidate(entry.name):
                if link:
                    linked_files.append(path)
                else:
                    self._add_walked(path, beneath, real)
        folders.extend(reversed(inner))

    def _is_new_folder(self, folder: Path) -> bool:
        status = folder.stat()
        # Some file systems number nothing; the real path stands in.
        identity = (status.st_dev, status.st_ino) if status.st_ino else os.path.realpath(folder)
        if identity in self._seen_folders:
            return False
        self._seen_folders.add(identity)
        return True

    def _add_walked(self, path: Path, real: str, real_folder: str) -> None:
        try:
            status = path.stat()
        except OSError as error:
            self._problem(path, f"cannot be looked at: {_reason(error)}")
            return
        if not stat.S_ISREG(status.st_mode):
            self._problem(path, "is not a regular file")
        elif _LOG_NAME.fullmatch(path.name):
            self._add_file(path, real, real_folder, status.st_size)
        else:
            self._open_archive(path, real)

    def _add_file(self, path: Path, real: str, real_folder: str, size: int) -> None:
        """Take a log in. The real paths, without links, tell whether it is new, and which others share its folder."""
        if not self._is_new_file(real):
            return
        shown = _shown(path)
        match = _LOG_NAME.fullmatch(path.name)
        if match is None:
            compressed = path.name.lower().endswith(_COMPRESSED_SUFFIXES)
            file = SessionFile(path, None, shown, shown, None, compressed, size, None, None)
            self._batch.append(_Entry(file, (real,)))
            return
        generation, compressed = _generation(match)
        file = SessionFile(path, None, shown, _shown(path.parent), generation, compressed, size, None, None)
        self._batch.append(_Entry(file, (real_folder, "")))

    def _is_new_file(self, real: str) -> bool:
        if real in self._seen_files:
            return False
        self._seen_files.add(real)
        return True

    def _is_archive(self, path: Path) -> bool:
        """Tell whether an explicitly named file is an archive; by its name or, failing that, by how it begins."""
        if path.name.lower().endswith(_ARCHIVE_SUFFIX):
            return True
        try:
            with path.open("rb") as stream:
                return stream.read(len(_ARCHIVE_MAGICS[0])) in _ARCHIVE_MAGICS
        except OSError:
            # Whoever reads the file will meet the same error and report it.
            return False

    def _open_archive(self, path: Path, real: str) -> None:
        if not self._is_new_file(real):
            return
        # Few runs meet an archive, and what reads them takes long to import.
        import zipfile
        import zlib

        try:
            with zipfile.ZipFile(path) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, zlib.error, NotImplementedError, EOFError, ValueError, OSError) as error:
            self._problem(path, f"the archive cannot be opened: {_reason(error)}")
            return
        counts: dict[str, int] = {}
        for member in members:
            counts[member.filename] = counts.get(member.filename, 0) + 1
        # The last entry of a name is the one a reader of the archive gets.
        by_name = {member.filename: member for member in members}
        shown_archive = _shown(path)
        for name, member in by_name.items():
            folder, _, base = name.replace("\\", "/").rpartition("/")
            match = _LOG_NAME.fullmatch(base)
            if match is None:
                continue
            generation, compressed = _generation(match)
            note = (
                f"the archive holds {counts[name]} entries of this name; the last is read" if counts[name] > 1 else None
            )
            file = SessionFile(
                path=path,
                member=name,
                shown=f"{shown_archive}!{_printable(name)}",
                folder=f"{shown_archive}!{_printable(folder)}",
                generation=generation,
                compressed=compressed,
                size=member.file_size,
                superseded_by=None,
                note=note,
            )
            self._batch.append(_Entry(file, (real, "!", folder)))

    def _problem(self, path: Path, message: str) -> None:
        self.problems.append(Problem(_shown(path), message))


def _choose(entries: Iterable[_Entry]) -> tuple[SessionFile, ...]:
    """Mark, folder by folder, every log but the one that stands for the session."""
    entries = list(entries)
    chosen: dict[tuple[str, ...], SessionFile] = {}
    folders: dict[tuple[str, ...], str] = {}
    for entry in entries:
        folders.setdefault(entry.group, entry.file.folder)
        best = chosen.get(entry.group)
        if best is None or _rank(entry.file) > _rank(best):
            chosen[entry.group] = entry.file
    both = {
        entry.group
        for entry in entries
        if entry.file.generation == chosen[entry.group].generation
        and entry.file.compressed != chosen[entry.group].compressed
    }
    files: list[SessionFile] = []
    for entry in entries:
        best = chosen[entry.group]
        file = entry.file
        if file is not best:
            file = msgspec.structs.replace(file, superseded_by=best.shown)
        elif entry.group in both:
            remark = f"generation {best.generation} is there in both encodings; the compressed one is read"
            file = msgspec.structs.replace(file, note=remark if file.note is None else f"{file.note}; {remark}")
        files.append(msgspec.structs.replace(file, folder=folders[entry.group]))
    return tuple(files)


def _rank(file: SessionFile) -> tuple[int, bool]:
    return (-1 if file.generation is None else file.generation, file.compressed)


def _generation(match: re.Match[str]) -> tuple[int, bool]:
    number, suffix = match.groups()
    return (int(number) if number else 0, suffix is not None)


def _is_candidate(name: str) -> bool:
    return _LOG_NAME.fullmatch(name) is not None or name.lower().endswith(_ARCHIVE_SUFFIX)


def _shown(path: Path) -> str:
    """Give a path as text that any UTF-8 stream can take and no terminal obeys."""
    return _printable(os.fsencode(path).decode("utf-8", "backslashreplace") if "\0" not in str(path) else str(path))


def _printable(text: str) -> str:
    if text.isprintable():
        return text
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return "".join(_escape(char) if _is_control(char) else char for char in text)


def _is_control(char: str) -> bool:
    return char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
