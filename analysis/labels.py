"""Labels: what a person knows of a session. Never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, cast

import msgspec

from analysis.globs import glob_fault, session_matches

__all__ = [
    "LABELS",
    "Label",
    "LabelConflict",
    "LabelError",
    "LabelRule",
    "LabelRules",
    "label_tables",
    "parse_label",
    "read_labels",
]

Label = Literal["good", "stuck", "unknown"]
LABELS: tuple[Label, ...] = ("good", "stuck", "unknown")

_HEADINGS = ("session", "label", "reason")
_TABLE = "label"
_LEAST_COLUMNS = 2


class LabelError(ValueError):
    """A label or a labels file that cannot be used; the message names place and value."""


class LabelConflict(LabelError):
    """Two labels for one session."""


class LabelRule(msgspec.Struct, frozen=True):
    """One label for the sessions whose id or path a glob matches."""

    label: Label
    glob: str
    reason: str
    origin: str
    """Where the rule was given, for messages."""

    def matches(self, session_id: str | None, path: str) -> bool:
        """Tell whether the rule speaks of a session: by its id, its path, or a tail of its path.

        `*` takes any characters, `/` too. A glob that names a folder takes what is in it.
        """
        return session_matches(self.glob, session_id, path)


class LabelRules:
    """Every label rule of one command."""

    def __init__(self, rules: Iterable[LabelRule] = ()) -> None:
        self.rules = tuple(rules)
        self._used: set[int] = set()

    def label_of(self, session_id: str | None, path: str) -> Label:
        """Return a session's label; `unknown` where no rule matches.

        Raises:
            LabelConflict: rules give it different labels.
        """
        found: LabelRule | None = None
        for position, rule in enumerate(self.rules):
            if not rule.matches(session_id, path):
                continue
            self._used.add(position)
            if found is not None and found.label != rule.label:
                message = (
                    f"two labels for session {session_id or path}: "
                    f"{found.label} ({found.origin}) and {rule.label} ({rule.origin})"
                )
                raise LabelConflict(message)
            found = found or rule
        return "unknown" if found is None else found.label

    def unused(self) -> list[LabelRule]:
        """Return the rules that have matched no session so far."""
        return [rule for position, rule in enumerate(self.rules) if position not in self._used]


def _rule(label: str, glob: str, reason: str, origin: str) -> LabelRule:
    if label not in LABELS:
        message = f"{origin}: unknown label {label!r}; known: {', '.join(LABELS)}"
        raise LabelError(message)
    fault = glob_fault(glob)
    if fault is not None:
        message = f"{origin}: {fault}"
        raise LabelError(message)
    return LabelRule(label=label, glob=glob, reason=reason, origin=origin)


def parse_label(text: str) -> LabelRule:
    """Read `NAME=GLOB`.

    Raises:
        LabelError: it is not of that form, the label is unknown, or the glob is bad.
    """
    label, equals, glob = text.partition("=")
    if not equals:
        message = f"--label {text}: must be NAME=GLOB"
        raise LabelError(message)
    return _rule(label, glob, "", f"--label {text}")


def read_labels(path: Path) -> list[LabelRule]:
    """Read a labels file: CSV with the columns session, label, reason (headings optional), or TOML `[[label]]` tables.

    Raises:
        LabelError: the file cannot be read or does not parse, with file and line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        message = f"{path}: cannot read the labels: {reason}"
        raise LabelError(message) from None
    return _read_toml(path, text) if path.suffix.lower() == ".toml" else _read_csv(path, text)


def _read_csv(path: Path, text: str) -> list[LabelRule]:
    import csv
    import io

    rules: list[LabelRule] = []
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if not rules and tuple(cells[:_LEAST_COLUMNS]) == _HEADINGS[:_LEAST_COLUMNS]:
                continue
            origin = f"{path}:{reader.line_num}"
            if len(cells) < _LEAST_COLUMNS:
                message = f"{origin}: needs a session and a label"
                raise LabelError(message)
            rules.append(_rule(cells[1], cells[0], ", ".join(cells[_LEAST_COLUMNS:]), origin))
    except csv.Error as error:
        message = f"{path}:{reader.line_num}: {error}"
        raise LabelError(message) from None
    return rules


def _read_toml(path: Path, text: str) -> list[LabelRule]:
    import tomllib

    from analysis.toml_faults import toml_fault

    try:
        document: dict[str, object] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        line, said = toml_fault(text, error)
        message = f"{path}: {said}" if line is None else f"{path}:{line}: {said}"
        raise LabelError(message) from None
    tables = document.get(_TABLE)
    if not isinstance(tables, list):
        message = f"{path}: has no [[{_TABLE}]] tables"
        raise LabelError(message)
    return label_tables(cast("Sequence[object]", tables), str(path))


def label_tables(tables: Sequence[object], shown: str) -> list[LabelRule]:
    """Read `[[label]]` tables out of a file already parsed.

    Raises:
        LabelError: a table is none, or holds something else than session, label and reason.
    """
    rules: list[LabelRule] = []
    for number, table in enumerate(tables, start=1):
        origin = f"{shown}: [[{_TABLE}]] number {number}"
        members = cast("dict[str, object]", table) if isinstance(table, dict) else {}
        session, label, reason = (members.get(heading, "") for heading in _HEADINGS)
        if not isinstance(session, str) or not isinstance(label, str) or not isinstance(reason, str):
            message = f"{origin}: session, label and reason must be text"
            raise LabelError(message)
        for heading in _HEADINGS[:_LEAST_COLUMNS]:
            if heading not in members:
                message = f"{origin}: has no {heading}"
                raise LabelError(message)
        rules.append(_rule(label, session, reason, origin))
    return rules
