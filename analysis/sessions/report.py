"""The read report: for every file, whether it could be read, what was lost and where."""

from __future__ import annotations

from typing import Literal

import msgspec

__all__ = ["READ_STATES", "ReadDefect", "ReadReport", "ReadState"]

ReadState = Literal["ok", "torn", "partial", "corrupt", "unsupported", "duplicate", "superseded", "empty"]
READ_STATES: tuple[ReadState, ...] = (
    "ok",
    "torn",
    "partial",
    "corrupt",
    "unsupported",
    "duplicate",
    "superseded",
    "empty",
)

_MOST_DEFECTS = 100
"""Defects (and remarks of a kind) told one by one for a file; the rest are counted."""


class ReadDefect(msgspec.Struct, frozen=True):
    """One thing that was wrong with a file, with its place as far as there is one."""

    kind: str
    message: str
    line: int | None = None
    """1-based."""
    byte: int | None = None
    """Offset from 0: in the file, or for a row of a compressed log in the decompressed text."""
    frame: int | None = None
    """0-based zstd frame."""
    lost_bytes: int = 0
    seq: int | None = None
    """Sequence number of the row: as written, or the one that was next where it cannot be read."""

    def place(self) -> str:
        """Return the place as text: `:812 (frame 7, byte 40213)`, as much of it as is known."""
        line = f":{self.line}" if self.line is not None else ""
        parts = [f"frame {self.frame}"] if self.frame is not None else []
        if self.byte is not None:
            parts.append(f"byte {self.byte}")
        return f"{line} ({', '.join(parts)})" if parts else line


class ReadReport(msgspec.Struct):
    """One file's row of the read report. `rows` counts usable records, the header not among them."""

    shown: str
    state: ReadState = "ok"
    session_id: str | None = None
    version: int | None = None
    size: int = 0
    """Bytes on disk."""
    expanded: int = 0
    """Bytes of text."""
    lines: int = 0
    rows: int = 0
    lost_rows: int = 0
    lost_bytes: int = 0
    defects: list[ReadDefect] = msgspec.field(default_factory=list[ReadDefect])
    defects_untold: int = 0
    """Defects beyond the ones listed."""
    notes: list[str] = msgspec.field(default_factory=list[str])
    close: bool = False
    """A close reading: what would be a note is a remark, with its kind and, where there is one, its place."""
    remarks: list[ReadDefect] = msgspec.field(default_factory=list[ReadDefect])
    """What a close reading saw besides the defects. Nothing is lost by it."""
    remark_counts: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    """How many there are of each kind, the ones beyond the listed too."""
    counts_instead: str | None = None
    """The file that counts where this one is a copy or an older generation."""

    def add(self, defect: ReadDefect) -> None:
        """Record a defect; beyond the first hundred only their number and their loss."""
        self.lost_bytes += defect.lost_bytes
        if len(self.defects) < _MOST_DEFECTS:
            self.defects.append(defect)
        else:
            self.defects_untold += 1

    def note(self, kind: str, message: str) -> None:
        """Record what lost nothing and has no place in the file."""
        if self.close:
            self.remark(ReadDefect(kind, message))
        elif message not in self.notes:
            self.notes.append(message)

    def remark(self, remark: ReadDefect) -> None:
        """Record a remark; of a kind the first hundred are listed."""
        count = self.remark_counts.get(remark.kind, 0) + 1
        self.remark_counts[remark.kind] = count
        if count <= _MOST_DEFECTS:
            self.remarks.append(remark)

    @property
    def used(self) -> bool:
        """Tell whether the file's calls count."""
        return self.state in {"ok", "torn", "partial"}
