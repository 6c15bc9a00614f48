"""Turn the bytes of a session log into lines, streaming, and account for every byte that gave none.

A plain log is split on line feeds. A compressed log is a run of independent zstd frames; their structure (frame and
block headers) is walked here rather than left to the decompressor, so that each line knows its frame, a cut tail and a
damaged frame are told apart, reading goes on after damage, and no step yields more than a MiB or so at once.
"""

import io
import json
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from enum import Enum, auto
from functools import cache
from itertools import accumulate, chain
from typing import IO, Final, NamedTuple

import msgspec
import zstandard

from analysis.sessions.find import SessionFile

__all__ = [
    "BOM",
    "CUT_LINE",
    "ENCODING",
    "EXPANDED_TOO_FAR",
    "FRAME",
    "GROWING",
    "IO_FAULT",
    "KINDS",
    "LINE_TOO_LONG",
    "NOTES",
    "SINGLE_FRAME",
    "TORN",
    "Defect",
    "Limits",
    "Line",
    "LineReader",
    "Lines",
    "Unreadable",
    "is_blank",
]

_KIBI: Final = 1024
_MEBI: Final = 1024 * _KIBI
_GIBI: Final = 1024 * _MEBI

TORN: Final = "torn"
"""The tail is lost: the last frame is cut, or the last line has no line feed."""
FRAME: Final = "frame"
"""A damaged frame, or bytes that are no frame at all; reading went on after it where it could."""
CUT_LINE: Final = "cut-line"
"""A line lost in part because it touches a damaged frame."""
LINE_TOO_LONG: Final = "line-too-long"
"""A line over the limit, dropped."""
EXPANDED_TOO_FAR: Final = "expanded-too-far"
"""The text went over the limit; reading stopped there."""
IO_FAULT: Final = "io"
"""The system failed to deliver the rest of the file."""
BOM: Final = "bom"
"""A byte order mark opened the file and was left out. Nothing is lost."""
SINGLE_FRAME: Final = "single-frame"
"""The whole log sits in one frame: somebody compressed it anew. Nothing is lost."""
GROWING: Final = "growing"
"""The file grew while it was read; what was there at the start was read. Nothing is lost."""
ENCODING: Final = "encoding"
"""The content is not in the encoding that the name tells; the content holds. Nothing is lost."""

NOTES: Final = frozenset({BOM, SINGLE_FRAME, GROWING, ENCODING})
"""The kinds of defect that lost nothing."""
KINDS: Final = NOTES | {TORN, FRAME, CUT_LINE, LINE_TOO_LONG, EXPANDED_TOO_FAR, IO_FAULT}
"""Every kind of defect."""

_SLICE: Final = _MEBI
_FIRST_SLICE: Final = 64 * _KIBI
"""Bytes read at first: often only the header is wanted."""
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_JSON_SPACE: Final = b" \t\r\n"
_OPENING: Final = ord("{")
_CLOSING: Final = ord("}")
# Above this an odd last line is judged by the fast JSON decoder alone; the slow one would take many times its size.
_SLOW_JSON_LIMIT: Final = 16 * _MEBI

# zstd's format (RFC 8878, section 3.1).
_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_SKIPPABLE_MAGIC_TAIL: Final = b"\x2a\x4d\x18"
_SKIPPABLE_FIRST_BYTES: Final = range(0x50, 0x60)
_SKIPPABLE_HEADER: Final = 8
_DESCRIPTOR_AT: Final = 4
_FRAME_HEADER_LONGEST: Final = 18
_RESERVED_BIT: Final = 0x08
_SINGLE_SEGMENT_BIT: Final = 0x20
_CHECKSUM_BIT: Final = 0x04
_CHECKSUM_SIZE: Final = 4
_DICTIONARY_ID_SIZES: Final = (0, 1, 2, 4)
_CONTENT_SIZE_SIZES: Final = (0, 2, 4, 8)
_WINDOW_LOG_LEAST: Final = 10
_SMALL_FRAME: Final = _MEBI
"""Bytes of text up to which a frame is decompressed in one call."""
_BATCH: Final = _SMALL_FRAME
"""Bytes of text that are given out at once."""
_FIRST_BATCH: Final = 4 * _KIBI
"""The same at the beginning, where often only the header is wanted."""
_SMALL_FRAME_BYTES: Final = 2 * _SMALL_FRAME
"""More than such a frame can take in the file, unless it is padded with empty blocks."""
_FREED_KEPT: Final = 8 * _MEBI
_BLOCK_HEADER: Final = 3
_BLOCK_LARGEST: Final = 128 * _KIBI
_BLOCK_RLE: Final = 1
_BLOCK_RESERVED: Final = 3
_ONLY_BLOCK_MASK: Final = 0b111
_ONLY_BLOCK: Final = 0b101
"""A block header's low bits where the block is the last one and compressed: nearly every frame has this one alone."""
_ZEROS: Final = re.compile(rb"\0+")
# The search for a frame after damage tries places that are none; this bounds what all failures of one file may cost.
_SEARCH_BUDGET: Final = _GIBI
_SEARCH_STEP_COST: Final = 64 * _KIBI
# Of one kind, this many defects are told one by one; the rest share one entry, or a hostile file could fill memory.
_DEFECTS_OF_A_KIND: Final = 1000
_DECOMPRESSOR_PREFIX: Final = "zstd decompressor error: "


class Limits(msgspec.Struct, frozen=True):
    """Bound what one file may take.

    `max_line`: bytes of one line, which takes up to three times as many while it is decoded (six where its text holds
    characters beyond the basic plane). `max_expanded`: bytes of text from one file. `max_window`: bytes of history a
    zstd frame may ask the decompressor to keep. `max_held`: bytes of text of one frame kept until the frame is known to
    be sound; a frame with more text is decompressed twice instead.
    """

    max_line: int = 64 * _MEBI
    max_expanded: int = 64 * _GIBI
    max_window: int = 128 * _MEBI
    max_held: int = 32 * _MEBI


class Line(NamedTuple):
    """Hold one line and its place.

    `number` counts from 1, blank lines and lost lines included, as far as they could be seen (how many lines a
    damaged frame held is unknown). `offset` is that of the first byte: in the file for a plain log, in the text
    that could be decompressed for a compressed one. `frame` counts from 0, damaged frames included, skippable ones
    not; it is the frame the line began in, None in a plain log. `data` has no line feed, and no byte order mark; a
    carriage return at its end is kept.
    """

    number: int
    offset: int
    frame: int | None
    data: bytes

    def alone(self) -> "Lines":
        """Give the line as a batch of its own."""
        plain = self.data.startswith(b"{")
        return Lines(self.number, self.data, 1, self.offset, _Frames(self.frame, self.offset), one_object_each=plain)


class Lines:
    """Hold whole lines that follow each other, blank ones among them; where each stands is worked out when asked for.

    `first` is the number of the first, `count` how many there are, `text` all of them with the line feeds between them.
    One more line feed may stand at the end. `one_object_each` tells that the text opens like an object and every line
    feed within stands between what closes one and what opens the next: so it can be inside no value, and where the text
    holds as many values as lines, each line holds one.
    """

    __slots__ = ("_asked", "_data", "_frames", "_offset", "count", "first", "one_object_each", "text")

    def __init__(
        self, first: int, text: bytes, count: int, offset: int, frames: "_Frames", *, one_object_each: bool
    ) -> None:
        self.first: int = first
        self.text: bytes = text
        self.count: int = count
        self.one_object_each: bool = one_object_each
        self._data: list[bytes] | None = None
        self._offset: int = offset
        self._frames: _Frames = frames
        # The last line that was asked for, by its index, and its offset: many are asked for, in order, where none can
        # be read.
        self._asked: tuple[int, int] = (0, offset)

    @property
    def data(self) -> list[bytes]:
        """The lines one by one, without line feeds."""
        if self._data is None:
            self._data = self.text.split(b"\n")
            del self._data[self.count :]
        return self._data

    def __iter__(self) -> Iterator[Line]:
        """Give the lines that are not blank, each with its place."""
        at = self._offset
        for number, data in enumerate(self.data, self.first):
            if not is_blank(data):
                yield Line(number, at, self._frames.at(at), data)
            at += len(data) + 1

    def line(self, number: int) -> Line:
        """Give the line of a number, with its place."""
        index = number - self.first
        last, at = self._asked if self._asked[0] <= index else (0, self._offset)
        at += sum(map(len, self.data[last:index])) + index - last
        self._asked = (index, at)
        return Line(number, at, self._frames.at(at), self.data[index])


def is_blank(data: bytes) -> bool:
    """Tell whether a line holds nothing but white space."""
    return data[:1] != b"{" and not data.strip(_JSON_SPACE)


class Defect(msgspec.Struct, frozen=True):
    """Report one fault of a file.

    `kind` is one of `KINDS`. `line` is the line it hit, or the one that would have come next. `byte` is an offset in
    the file; None where only the text has a place. `lost_bytes` were not used: bytes of the file for a damaged frame,
    for the unread rest and in a plain log; bytes of text for a line of a compressed log. For a cut last frame it is
    the sum of the bytes that could not be decompressed and the text of the unfinished line.
    """

    kind: str
    message: str
    line: int | None
    byte: int | None
    frame: int | None
    lost_bytes: int


class Unreadable(Exception):
    """Report a file that could not be opened."""

    def __init__(self, shown: str, message: str) -> None:
        super().__init__(f"{shown}: {message}")
        self.shown: str = shown
        self.message: str = message


class LineReader:
    """Read the lines of one log, once, front to back.

    Iterating raises `Unreadable` when the file cannot be opened; every later fault becomes an entry of `defects`.
    `on_bytes` is told how many more bytes of the file were read. A compressed frame whose checksum fails gives no
    lines at all; the lines of a cut last frame, which has lost its checksum, are used.

    Of one kind at most a thousand defects are told one by one; one more entry sums up the rest.

    After (and while) iterating: `defects`, `bytes_read` of the file (for a member of an archive: of the unpacked
    member), `expanded_bytes` of text, `frames` met, `is_zstd` by content.
    """

    def __init__(
        self,
        file: SessionFile,
        *,
        limits: Limits | None = None,
        on_bytes: Callable[[int], None] | None = None,
    ) -> None:
        self.file: SessionFile = file
        self.limits: Limits = Limits() if limits is None else limits
        self.defects: list[Defect] = []
        self.expanded_bytes: int = 0
        self.frames: int = 0
        self.is_zstd: bool = False
        self._on_bytes: Callable[[int], None] | None = on_bytes
        self._started: bool = False
        self._stopped: bool = False
        self._source: _Source | None = None
        self._counts: dict[str, int] = {}
        self._shared: dict[str, int] = {}
        self._splitter: _Splitter = _Splitter(self.limits.max_line, self._report)

    @property
    def bytes_read(self) -> int:
        """Tell how many bytes of the file were read."""
        return 0 if self._source is None else self._source.bytes_read

    def __iter__(self) -> Iterator[Line]:
        return chain.from_iterable(self.batches())

    def batches(self) -> Iterator[Lines]:
        """Give the lines as they come, several at once; a batch holds about a MiB, or one long line."""
        if self._started:
            raise RuntimeError("a LineReader reads its file once")
        self._started = True
        return self._read()

    def _read(self) -> Iterator[Lines]:
        _keep_freed_memory()
        with ExitStack() as stack:
            opened = _open(self.file, stack)
            size, descriptor = opened.size, opened.descriptor
            source = _Source(opened, self._report, self._on_bytes)
            self._source = source
            if size:
                self.is_zstd = _holds_zstd(source, named_so=self.file.compressed)
                if self.is_zstd != self.file.compressed:
                    said, found = ("zstd", "plain text") if self.file.compressed else ("plain text", "zstd")
                    self._report(Defect(ENCODING, f"the name says {said}, the content is {found}", None, 0, None, 0))
                yield from self._compressed(source) if self.is_zstd else self._plain(source)
            if descriptor is not None:
                self._note_growth(size, descriptor)

    def _note_growth(self, size: int, descriptor: int) -> None:
        try:
            grown = os.fstat(descriptor).st_size - size
        except OSError:
            return
        if grown > 0:
            message = f"the file grew by {grown} bytes while it was read; the first {size} were read"
            self._report(Defect(GROWING, message, None, size, None, 0))

    def _report(self, defect: Defect) -> None:
        count = self._counts.get(defect.kind, 0) + 1
        self._counts[defect.kind] = count
        if count <= _DEFECTS_OF_A_KIND:
            self.defects.append(defect)
            return
        if count == _DEFECTS_OF_A_KIND + 1:
            self._shared[defect.kind] = len(self.defects)
            self.defects.append(defect)
            return
        place = self._shared[defect.kind]
        first = self.defects[place]
        message = f"{count - _DEFECTS_OF_A_KIND} more defects of this kind, of which this is the first"
        self.defects[place] = msgspec.structs.replace(
            first, message=message, lost_bytes=first.lost_bytes + defect.lost_bytes
        )

    # Text to lines

    def _take(self, text: bytes, frame: int | None) -> list[Lines]:
        room = self.limits.max_expanded - self.expanded_bytes
        if len(text) > room:
            text = text[:room]
            self._stopped = True
        self.expanded_bytes += len(text)
        return self._splitter.feed(text, _Frames(frame, self._splitter.offset))

    def _report_stop(self, unread: int, byte: int, frame: int | None) -> None:
        message = f"the text goes on beyond the limit of {self.limits.max_expanded} bytes; reading stopped there"
        line = self._splitter.number + 1
        self._report(Defect(EXPANDED_TOO_FAR, message, line, byte, frame, unread))

    def _plain(self, source: "_Source") -> Iterator[Lines]:
        at = 0
        while at < source.end and not self._stopped:
            index = source.load(at, 1)
            text = source.window[index:] if index else source.window
            at += len(text)
            yield from self._take(text, None)
        if self._stopped:
            unread_from = self._splitter.pending_offset
            self._report_stop(source.end - unread_from, unread_from, None)
            return
        rest = self._splitter.finish()
        if isinstance(rest, Line):
            yield rest.alone()
        elif rest is not None:
            message = f"the last line has no line feed; its {rest.size} bytes are lost"
            self._report(Defect(TORN, message, rest.number, rest.offset, None, rest.size))

    # Frames to text

    def _compressed(self, source: "_Source") -> Iterator[Lines]:
        walker = _FrameWalker(source, self.limits.max_window)
        at = 0
        torn: _Walk | None = None
        skipped: _Walk | None = None
        while at < source.end and not self._stopped:
            room = min(_BATCH if at else _FIRST_BATCH, self.limits.max_expanded - self.expanded_bytes)
            text, sizes, at = walker.small_frames(at, room)
            if sizes:
                skipped = None
                self.expanded_bytes += len(text)
                yield from self._splitter.feed(text, _Frames(self.frames, self._splitter.offset, sizes))
                self.frames += len(sizes)
                continue
            walk, held = self._hold(walker, at)
            if walk.state is _State.SKIPPABLE:
                skipped = walk
                at = walk.reached
                continue
            if walk.state is _State.BAD and not walk.is_frame and skipped is not None:
                # What follows a skippable frame is no frame: its length is wrong, and it may have hidden good frames.
                walk.start = skipped.start
            skipped = None
            if walk.state in (_State.BAD, _State.TORN):
                following = walker.following(walk)
                if walk.state is _State.BAD or following < source.end or walker.has_given_up:
                    yield from self._gap(walk, following, walker)
                    at = following
                    continue
                torn = walk
            texts = walker.texts(_Walk(at)) if held is None else iter(held)
            for text in texts:
                yield from self._take(text, self.frames)
                if self._stopped:
                    break
            self.frames += 1
            at = walk.reached
            if self._stopped:
                self._report_stop(source.end - walk.start, walk.start, self.frames - 1)
                return
        yield from self._finish_compressed(torn)

    def _hold(self, walker: "_FrameWalker", at: int) -> "tuple[_Walk, list[bytes] | None]":
        """Walk the frame at `at` to its end; keep its text if that is little enough, else give None for it."""
        walk = _Walk(at)
        held: list[bytes] | None = []
        produced = 0
        for text in walker.texts(walk):
            produced += len(text)
            if held is not None:
                held.append(text)
                if produced > self.limits.max_held:
                    held = None
            if self.expanded_bytes + produced > self.limits.max_expanded:
                # Whether the frame is sound cannot be told within the limit; the text up to there is used.
                walk.state = _State.UNFINISHED
                break
        return walk, held

    def _gap(self, walk: "_Walk", following: int, walker: "_FrameWalker") -> Iterator[Lines]:
        """Account for a damaged stretch of the file, and for the line it cut."""
        line = self._splitter.cut()
        if line is not None:
            yield line.alone()
        lost = following - walk.start
        if not walker.is_end(following):
            whither = "reading goes on after it"
        elif walker.has_given_up:
            whither = "the search for a sound frame was given up"
        else:
            whither = "no sound frame follows"
        fault = walk.fault or "the frame goes on beyond the end of the file"
        message = f"{fault}; {lost} bytes are lost, {whither}"
        self._report(Defect(FRAME, message, self._splitter.number + 1, walk.start, self.frames, lost))
        self.frames += 1

    def _finish_compressed(self, torn: "_Walk | None") -> Iterator[Lines]:
        rest = self._splitter.finish()
        if isinstance(rest, Line):
            yield rest.alone()
            rest = None
        if torn is not None:
            undecoded = torn.reached - torn.decoded
            message = f"the last frame is cut: {undecoded} bytes could not be decompressed"
            if torn.fault is not None:
                message += f" ({torn.fault})"
            if rest is not None:
                message += f", {rest.size} bytes of text are an unfinished line"
            line = self._splitter.number + (1 if rest is None else 0)
            lost = undecoded + (0 if rest is None else rest.size)
            self._report(Defect(TORN, message, line, torn.start, self.frames - 1, lost))
        elif rest is not None:
            message = f"the last line has no line feed; its {rest.size} bytes are lost"
            self._report(Defect(TORN, message, rest.number, None, rest.frame, rest.size))
        if self.frames == 1 and self._splitter.number > 1:
            message = "the whole log is one frame; the harness writes its header line as a frame of its own"
            self._report(Defect(SINGLE_FRAME, message, None, 0, 0, 0))


@cache
def _keep_freed_memory() -> None:
    """Have the C library keep some of what is freed, where it learns from that: it holds a MiB of text again and again.

    glibc gives large blocks back to the system at once, and the next one is filled with zeros anew, page by page, until
    a larger block has come and gone. This one is never written to, and costs nothing.
    """
    bytes(_FREED_KEPT)


class _Opened(NamedTuple):
    stream: IO[bytes] | io.FileIO
    size: int
    descriptor: int | None
    """To watch its growth by."""
    faults: tuple[type[Exception], ...]
    """What reading it raises. Known before anything is: where a file is too large for memory nothing can be loaded."""


def _open(file: SessionFile, stack: ExitStack) -> _Opened:
    """Open a log for reading."""
    try:
        stream = stack.enter_context(io.FileIO(file.path, "r", opener=_opener))
        status = os.fstat(stream.fileno())
    except (OSError, ValueError) as error:
        raise Unreadable(file.shown, f"cannot be opened: {_reason(error)}") from error
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(file.shown, "is not a regular file")
    if file.member is None:
        return _Opened(stream, status.st_size, stream.fileno(), (OSError, EOFError))
    from zipfile import ZIP_DEFLATED, ZIP_STORED

    from analysis.sessions.archives import ARCHIVE_FAULTS, archive_in

    try:
        archive = archive_in(stream, status)
        info = archive.getinfo(file.member)
        # The other methods may unpack without bound in one step.
        if info.compress_type not in {ZIP_STORED, ZIP_DEFLATED}:
            raise Unreadable(file.shown, f"its compression method {info.compress_type} is not read, only deflate is")
        return _Opened(stack.enter_context(archive.open(info)), info.file_size, None, ARCHIVE_FAULTS)
    # An encrypted member is a RuntimeError, an unknown compression method its subclass NotImplementedError.
    except (*ARCHIVE_FAULTS, RuntimeError, KeyError, ValueError) as error:
        raise Unreadable(file.shown, f"cannot be opened: {_reason(error)}") from error


def _opener(path: str, flags: int) -> int:
    # A pipe put in the file's place would else block the open for good.
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


def _holds_zstd(source: "_Source", *, named_so: bool) -> bool:
    """Tell the encoding by content; the name decides only where the beginning is neither."""
    index = source.load(0, len(_MAGIC))
    head = source.window[index : index + len(_MAGIC)]
    if head == _MAGIC or _is_skippable(head):
        return True
    if not named_so:
        return False
    index = source.load(0, _SLICE)
    window = source.window
    # A damaged first frame must not pass for plain text: that begins as a JSON object does.
    start = window[index:].removeprefix(_BYTE_ORDER_MARK).lstrip(_JSON_SPACE)[:2]
    return not (start[:1] == b"{" and start[1:] in (b'"', b"}", b" ", b"\t", b"\r", b"\n"))


def _is_skippable(head: bytes) -> bool:
    return head[1:4] == _SKIPPABLE_MAGIC_TAIL and head[0] in _SKIPPABLE_FIRST_BYTES


def _is_object(text: bytes) -> bool:
    """Tell whether `text` is one whole JSON object, by its structure; its strings are for others to judge."""
    if not text.rstrip(_JSON_SPACE).endswith(b"}"):
        return False
    try:
        msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    except (msgspec.MsgspecError, RecursionError, ValueError):
        if len(text) > _SLOW_JSON_LIMIT:
            return False
    else:
        return True
    # The fast decoder refuses lone surrogates and huge numbers, which the harness can write.
    try:
        value: object = json.loads(text, parse_int=str)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict)


class _Source:
    """Give a window of a file's bytes, from any place on, with little memory.

    A failure of the system ends the file where it happened and is reported as a defect.
    """

    def __init__(
        self,
        opened: _Opened,
        report: Callable[[Defect], None],
        on_bytes: Callable[[int], None] | None,
    ) -> None:
        self.window: bytes = b""
        self.end: int = opened.size
        self.bytes_read: int = 0
        self._base: int = 0
        self._position: int = 0
        self._stream: IO[bytes] | io.FileIO = opened.stream
        self._faults: tuple[type[Exception], ...] = opened.faults
        self._report: Callable[[Defect], None] = report
        self._on_bytes: Callable[[int], None] | None = on_bytes

    def load(self, at: int, count: int) -> int:
        """Bring `count` bytes from `at` on into `window`, fewer only where the file ends; give their index in it."""
        index = at - self._base
        available = len(self.window) - index
        if index >= 0 and (available >= count or (available >= 0 and self._base + len(self.window) >= self.end)):
            return index
        tail = self.window[index:] if 0 <= index <= len(self.window) else b""
        parts = [tail]
        filled = at + len(tail)
        goal = min(max(filled + (_SLICE if self.bytes_read else _FIRST_SLICE), at + count), self.end)
        while filled < goal:
            part = self._read(filled, goal - filled)
            if not part:
                break
            parts.append(part)
            filled += len(part)
        self.window = b"".join(parts)
        self._base = at
        return 0

    def _read(self, at: int, count: int) -> bytes:
        try:
            if self._position != at:
                self._stream.seek(at)
                self._position = at
            part = self._stream.read(count) or b""
        except self._faults as error:
            self._fail(at, f"cannot be read further: {_reason(error)}")
            return b""
        if not part:
            self._fail(at, "the file ended early")
        self._position += len(part)
        if self._position > self.bytes_read:
            fresh = self._position - self.bytes_read
            self.bytes_read = self._position
            if self._on_bytes is not None:
                self._on_bytes(fresh)
        return part

    def _fail(self, at: int, message: str) -> None:
        lost = self.end - at
        self.end = at
        self._report(Defect(IO_FAULT, f"{message}; {lost} bytes are lost", None, at, None, lost))


class _Rest(msgspec.Struct, frozen=True):
    """Describe text at the end that makes no line."""

    number: int
    offset: int
    frame: int | None
    size: int


class _Frames:
    """Tell which frame each place of a text is in: one frame (None for a plain log), or several from one on."""

    __slots__ = ("_ends", "_first", "_sizes", "_start")

    def __init__(self, first: int | None, start: int, sizes: list[int] | None = None) -> None:
        self._first: int | None = first
        self._start: int = start
        self._sizes: list[int] | None = sizes
        self._ends: list[int] | None = None

    def at(self, offset: int) -> int | None:
        """Give the frame that the byte at an offset of the text is in."""
        if self._first is None or self._sizes is None:
            return self._first
        if self._ends is None:
            self._ends = list(accumulate(self._sizes))
        return self._first + bisect_right(self._ends, offset - self._start)


def _count_lines(text: bytes) -> tuple[int, bool]:
    """Count the lines of a text that ends in a line feed, and tell whether each may be one object."""
    if text[0] != _OPENING:
        return text.count(b"\n"), False
    find = text.find
    count = 1
    last = len(text) - 1
    at = find(b"\n")
    while at < last:
        if text[at - 1] != _CLOSING or text[at + 1] != _OPENING:
            return text.count(b"\n"), False
        count += 1
        at = find(b"\n", at + 1)
    return count, True


class _Splitter:
    """Cut text that comes in pieces into lines; a line of many pieces costs its length once."""

    def __init__(self, max_line: int, report: Callable[[Defect], None]) -> None:
        self.number: int = 0
        self._max_line: int = max_line
        self._report: Callable[[Defect], None] = report
        self.offset: int = 0
        """Bytes of text so far."""
        # The line that has begun and not ended. Its parts are given up once it is too long.
        self._parts: list[bytes] = []
        self._size: int = 0
        self._start: int = 0
        self._frame: int | None = None
        # True until the first line feed after damage: what comes before it may be the end of a lost line.
        self._doubtful: bool = False

    @property
    def pending_offset(self) -> int:
        """Tell where the line that has begun, or the next one, starts in the text."""
        return self._start if self._size else self.offset

    def feed(self, text: bytes, frames: "_Frames") -> list[Lines]:
        """Give the lines that `text` completes."""
        lines: list[Lines] = []
        start, base = 0, self.offset
        self.offset += len(text)
        end = text.rfind(b"\n") + 1
        if end and (self._size or self._doubtful or not self.number):
            start = text.index(b"\n") + 1
            self._keep(text[: start - 1], base, frames.at(base))
            line = self._close()
            if line is not None:
                lines.append(line.alone())
        if start < end:
            whole_lines = text[start:end]
            count, plain = _count_lines(whole_lines)
            whole = Lines(self.number + 1, whole_lines, count, base + start, frames, one_object_each=plain)
            self.number += count
            if len(text) <= self._max_line:
                lines.append(whole)
            else:
                lines += self._bounded(whole)
        if end < len(text):
            self._keep(text[end:], base + end, frames.at(base + end))
        return lines

    def _bounded(self, lines: Lines) -> Iterator[Lines]:
        """Give the lines that are not too long."""
        for line in lines:
            if len(line.data) > self._max_line:
                self._report_too_long(line.number, line.offset, line.frame, len(line.data))
            else:
                yield line.alone()

    def cut(self) -> Line | None:
        """End the pending line at damage: give it if it is whole all the same, else report it."""
        rest = self.finish()
        self._doubtful = True
        if isinstance(rest, _Rest):
            self._report_cut(rest.number, rest.frame, rest.size, "its end is in a damaged frame")
            return None
        return rest

    def finish(self) -> Line | _Rest | None:
        """End the pending line at the end of the text: give it if it is whole but for its line feed, else its place."""
        if not self._size:
            return None
        if self._size > self._max_line:
            self._close()
            return None
        text = b"".join(self._parts)
        if not text.strip(_JSON_SPACE) or _is_object(text.removeprefix(_BYTE_ORDER_MARK)):
            return self._close()
        rest = _Rest(self.number + 1, self._start, self._frame, self._size)
        self.number += 1
        self._clear()
        return rest

    def _keep(self, piece: bytes, at: int, frame: int | None) -> None:
        if not self._size:
            self._start = at
            self._frame = frame
        self._size += len(piece)
        if self._size > self._max_line:
            self._parts.clear()
        else:
            self._parts.append(piece)

    def _close(self) -> Line | None:
        """End the pending line at its line feed."""
        self.number += 1
        size, start, frame, doubtful = self._size, self._start, self._frame, self._doubtful
        data = b"".join(self._parts)
        self._clear()
        if size > self._max_line:
            self._report_too_long(self.number, start, frame, size)
            return None
        if not start and data.startswith(_BYTE_ORDER_MARK):
            self._report(Defect(BOM, "a byte order mark opens the file; it was left out", 1, 0, frame, 0))
            data = data.removeprefix(_BYTE_ORDER_MARK)
            start = len(_BYTE_ORDER_MARK)
        if not data.strip(_JSON_SPACE):
            return None
        if doubtful and not _is_object(data):
            self._report_cut(self.number, frame, size, "its beginning is in a damaged frame")
            return None
        return Line(self.number, start, frame, data)

    def _clear(self) -> None:
        self._parts = []
        self._size = 0
        self._doubtful = False

    def _report_too_long(self, number: int, at: int, frame: int | None, size: int) -> None:
        message = f"the line has {size} bytes, the limit is {self._max_line}; it was left out"
        self._report(Defect(LINE_TOO_LONG, message, number, at if frame is None else None, frame, size))

    def _report_cut(self, number: int, frame: int | None, size: int, why: str) -> None:
        message = f"the line is not whole, {why}; {size} bytes of it are lost"
        self._report(Defect(CUT_LINE, message, number, None, frame, size))


class _State(Enum):
    """Say how the walk along a frame ended."""

    UNFINISHED = auto()
    COMPLETE = auto()
    SKIPPABLE = auto()
    TORN = auto()
    BAD = auto()


class _Walk(msgspec.Struct):
    """Tell of one walk along a frame, filled as it goes. All places are offsets in the file.

    `end` is where the frame ends by its own structure, None where that is unknown. `reached` is how far the structure
    was followed, `decoded` how far its bytes gave text. `produced` counts bytes of text.
    """

    start: int
    state: _State = _State.UNFINISHED
    is_frame: bool = False
    end: int | None = None
    reached: int = 0
    decoded: int = 0
    produced: int = 0
    fault: str | None = None


class _FrameWalker:
    """Follow the structure of frames and decompress them block by block."""

    def __init__(self, source: _Source, max_window: int) -> None:
        self._source: _Source = source
        self._max_window: int = max_window
        allowed = max(max_window, 1 << _WINDOW_LOG_LEAST)
        self._decompressor: zstandard.ZstdDecompressor = zstandard.ZstdDecompressor(max_window_size=allowed)
        self._budget: int = _SEARCH_BUDGET

    @property
    def has_given_up(self) -> bool:
        """Tell whether so much was searched in vain that frames after damage are looked for no more."""
        return self._budget <= 0

    def small_frames(self, at: int, room: int) -> tuple[bytes, list[int], int]:
        """Give the text of the sound, small frames from `at` on, the size of each, and where they end in the file.

        Nearly all frames are of this kind; their structure is walked, and all are decompressed in one call. What is odd
        in any way is left to the walk that can tell what is wrong: none are given where the first is. All text together
        is at most `room` bytes.
        """
        source = self._source
        start = index = source.load(at, _FRAME_HEADER_LONGEST)
        window = source.window
        end = len(window)
        most = min(_SMALL_FRAME, self._max_window)
        sizes: list[int] = []
        ends: list[int] = []
        number_of = int.from_bytes
        while end - index >= _FRAME_HEADER_LONGEST and window.startswith(_MAGIC, index):
            descriptor = window[index + _DESCRIPTOR_AT]
            size, width, base, trailer = _FRAME_SHAPES[descriptor]
            if not width:
                break
            blocks = index + size
            expected = base + number_of(window[blocks - width : blocks], "little")
            if expected > most or expected > room:
                break
            if not descriptor & _SINGLE_SEGMENT_BIT and _window_size(window[index:blocks], size) > self._max_window:
                break
            position = blocks + _BLOCK_HEADER
            word = number_of(window[blocks:position], "little")
            if word & _ONLY_BLOCK_MASK == _ONLY_BLOCK:
                position += word >> 3
            else:
                position = _end_of_blocks(window, blocks)
            if position is None or position - index > _SMALL_FRAME_BYTES:
                break
            position += trailer
            if position > end:
                if sizes:
                    break
                start = index = source.load(at, position - index)
                if source.window is window:
                    break
                window = source.window
                end = len(window)
                continue
            sizes.append(expected)
            ends.append(position)
            room -= expected
            index = position
        text, count = self._decompressed(window, start, sizes, ends)
        return text, sizes[:count], at + ends[count - 1] - start if count else at

    def _decompressed(self, window: bytes, start: int, sizes: list[int], ends: list[int]) -> tuple[bytes, int]:
        """Give the text of frames that stand one after another, as far as they are sound, and how many those are."""
        total = sum(sizes)
        if not sizes:
            return b"", 0
        try:
            reader = self._decompressor.stream_reader(memoryview(window)[start : ends[-1]], read_across_frames=True)
            text = reader.read(total) if total else b""
            if len(text) == total and not reader.read(1):
                return text, len(sizes)
        except zstandard.ZstdError:
            pass
        texts: list[bytes] = []
        for size, end in zip(sizes, ends, strict=True):
            try:
                text = self._decompressor.decompress(window[start:end])
            except zstandard.ZstdError:
                break
            if len(text) != size:
                break
            texts.append(text)
            start = end
        return b"".join(texts), len(texts)

    def texts(self, walk: _Walk) -> Iterator[bytes]:
        """Give the text of the frame at `walk.start`, at most 128 KiB at once, and fill `walk`.

        The text of a frame is known to be sound only when the walk has ended, as `COMPLETE`.
        """
        source = self._source
        start = walk.start
        walk.reached = walk.decoded = start
        index = source.load(start, _FRAME_HEADER_LONGEST)
        head = source.window[index : index + _FRAME_HEADER_LONGEST]
        if head[: len(_MAGIC)] != _MAGIC:
            self._pass_other(walk, head)
            return
        walk.is_frame = True
        size = _header_size(head)
        if len(head) < size:
            walk.state = _State.TORN
            walk.reached = source.end
            return
        descriptor = head[_DESCRIPTOR_AT]
        if descriptor & _RESERVED_BIT:
            walk.state = _State.BAD
            walk.fault = "the frame header has its reserved bit set"
            return
        decoder = None
        window_size = _window_size(head, size)
        if window_size > self._max_window:
            walk.fault = f"the frame asks for a window of {window_size} bytes, the limit is {self._max_window}"
        else:
            decoder = self._decompressor.decompressobj()
        trailer = _CHECKSUM_SIZE if descriptor & _CHECKSUM_BIT else 0
        fed = start
        at = start + size
        while True:
            # What is not yet fed (the frame header, once) is kept in the window together with the block.
            skip = at - fed
            index = source.load(fed, skip + _BLOCK_HEADER) + skip
            window = source.window
            if len(window) - index < _BLOCK_HEADER:
                yield from self._tear(walk, decoder, fed)
                return
            word = int.from_bytes(window[index : index + _BLOCK_HEADER], "little")
            last = word & 1
            kind = word >> 1 & 3
            length = word >> 3
            if kind == _BLOCK_RESERVED or length > _BLOCK_LARGEST:
                walk.state = _State.BAD
                walk.reached = at
                walk.fault = walk.fault or f"the block header at byte {at} is not valid"
                return
            if kind == _BLOCK_RLE:
                length = 1
            length += _BLOCK_HEADER + (trailer if last else 0)
            zeros = None if word else _ZEROS.match(window, index)
            if zeros is not None:
                # Zeros, as a crash can leave them at the end, are a run of empty blocks; one by one they take long.
                length = (zeros.end() - index) // _BLOCK_HEADER * _BLOCK_HEADER
            index = source.load(fed, skip + length)
            piece = source.window[index : index + skip + length]
            if len(piece) < skip + length:
                yield from self._tear(walk, decoder, fed)
                return
            at += length
            fed = at
            walk.reached = at
            if decoder is not None:
                try:
                    text = decoder.decompress(piece)
                except zstandard.ZstdError as error:
                    walk.fault = _decompressor_fault(error)
                    decoder = None
                else:
                    walk.decoded = at
                    if text:
                        walk.produced += len(text)
                        yield text
            if last:
                walk.end = at
                if decoder is not None and not decoder.eof:
                    walk.fault = "the frame does not end with its last block"
                walk.state = _State.COMPLETE if walk.fault is None else _State.BAD
                return

    def _tear(self, walk: _Walk, decoder: "zstandard.ZstdDecompressionObj | None", fed: int) -> Iterator[bytes]:
        """Give what the rest of the file, too short for a block, still holds.

        That is something only if the block is stored as it is, or if nothing but the checksum after it is cut.
        """
        source = self._source
        walk.state = _State.TORN
        walk.reached = source.end
        if decoder is None:
            return
        index = source.load(fed, source.end - fed)
        try:
            text = decoder.decompress(source.window[index : index + source.end - fed])
        except zstandard.ZstdError as error:
            walk.fault = _decompressor_fault(error)
            return
        if text:
            walk.decoded = source.end
            walk.produced += len(text)
            yield text

    def _pass_other(self, walk: _Walk, head: bytes) -> None:
        source = self._source
        if len(head) >= len(_MAGIC) and _is_skippable(head):
            end = walk.start + _SKIPPABLE_HEADER + int.from_bytes(head[len(_MAGIC) : _SKIPPABLE_HEADER], "little")
            if len(head) < _SKIPPABLE_HEADER or end > source.end:
                walk.state = _State.TORN
                walk.reached = source.end
            else:
                walk.state = _State.SKIPPABLE
                walk.end = walk.reached = end
        elif _MAGIC.startswith(head):
            walk.state = _State.TORN
            walk.reached = source.end
        else:
            walk.state = _State.BAD
            walk.fault = "no zstd frame begins here"

    def following(self, walk: _Walk) -> int:
        """Find where the next frame begins after one that is damaged or goes beyond the end of the file.

        That is where the frame ends by its structure, if something like a frame begins there. Before that place, or
        where it is unknown, a frame counts only if it decompresses from end to end: the magic number alone can stand
        anywhere. Gives the end of the file if there is none.
        """
        bound = walk.end if walk.end is not None and self._may_begin(walk.end) else None
        stop = self._source.end if bound is None else bound
        at = self._find_magic(walk.start + 1, stop)
        while at < stop and not self._is_sound(at):
            at = self._find_magic(at + 1, stop)
        if walk.reached > at:
            # Walks far beyond the next frame, repeated, would take time that grows with the square of the size.
            self._budget -= walk.reached - at + walk.produced
        return at

    def is_end(self, at: int) -> bool:
        """Tell whether nothing is left from `at` on."""
        return at >= self._source.end

    def _may_begin(self, at: int) -> bool:
        index = self._source.load(at, len(_MAGIC))
        head = self._source.window[index : index + len(_MAGIC)]
        return _MAGIC.startswith(head) or _is_skippable(head)

    def _find_magic(self, at: int, stop: int) -> int:
        source = self._source
        while at < stop:
            index = source.load(at, len(_MAGIC))
            window = source.window
            found = window.find(_MAGIC, index)
            if found >= 0:
                return min(at + found - index, stop)
            # The magic number may straddle two windows.
            step = len(window) - index - (len(_MAGIC) - 1)
            if step <= 0:
                return stop
            at += step
        return stop

    def _is_sound(self, at: int) -> bool:
        if self.has_given_up:
            return False
        walk = _Walk(at)
        for _ in self.texts(walk):
            if walk.produced > self._budget:
                break
        if walk.state is _State.COMPLETE:
            return True
        self._budget -= walk.reached - at + walk.produced + _SEARCH_STEP_COST
        return False


def _end_of_blocks(window: bytes, position: int) -> int | None:
    """Tell where the blocks that begin at `position` end, which may be behind the window; None for a bad block.

    Where the window ends between two blocks, it is the end of the next block's header.
    """
    end = len(window)
    while True:
        following = position + _BLOCK_HEADER
        if following > end:
            return following
        word = window[position] | window[position + 1] << 8 | window[position + 2] << 16
        kind = word >> 1 & 3
        if kind == _BLOCK_RESERVED:
            return None
        position = following + (1 if kind == _BLOCK_RLE else word >> 3)
        if word & 1:
            return position


def _header_size(head: bytes) -> int:
    """Tell the size of a frame's header by its descriptor; by the least there can be if that is missing."""
    if len(head) <= _DESCRIPTOR_AT:
        return _DESCRIPTOR_AT + 1
    descriptor = head[_DESCRIPTOR_AT]
    single = bool(descriptor & _SINGLE_SEGMENT_BIT)
    content = _CONTENT_SIZE_SIZES[descriptor >> 6] or (1 if single else 0)
    return _DESCRIPTOR_AT + 1 + (0 if single else 1) + _DICTIONARY_ID_SIZES[descriptor & 3] + content


def _frame_shape(descriptor: int) -> tuple[int, int, int, int]:
    """Tell what a frame's descriptor says of it.

    That is the size of its header, that of its content size (0: none, or no frame), what that counts from, and the size
    of its checksum.
    """
    if descriptor & _RESERVED_BIT:
        return 0, 0, 0, 0
    width = _CONTENT_SIZE_SIZES[descriptor >> 6] or (1 if descriptor & _SINGLE_SEGMENT_BIT else 0)
    # A field of two bytes counts from where a field of one byte ends.
    base = 256 if width == 2 else 0
    trailer = _CHECKSUM_SIZE if descriptor & _CHECKSUM_BIT else 0
    return _header_size(bytes(_DESCRIPTOR_AT) + bytes([descriptor])), width, base, trailer


_FRAME_SHAPES: Final = tuple(_frame_shape(descriptor) for descriptor in range(256))


def _window_size(head: bytes, size: int) -> int:
    """Tell how many bytes of history the frame with this whole header needs."""
    descriptor = head[_DESCRIPTOR_AT]
    if descriptor & _SINGLE_SEGMENT_BIT:
        width = _CONTENT_SIZE_SIZES[descriptor >> 6] or 1
        value = int.from_bytes(head[size - width : size], "little")
        # A field of two bytes counts from where a field of one byte ends.
        return value + 256 if width == 2 else value
    exponent, mantissa = divmod(head[_DESCRIPTOR_AT + 1], 8)
    base = 1 << (_WINDOW_LOG_LEAST + exponent)
    return base + base // 8 * mantissa


def _decompressor_fault(error: zstandard.ZstdError) -> str:
    return f"the frame does not decompress: {str(error).removeprefix(_DECOMPRESSOR_PREFIX)}"
