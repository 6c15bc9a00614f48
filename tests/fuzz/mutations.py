"""Damage a log, byte by byte, as crashes, copies and hostile writers do; seeded, so each file can be made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import zstandard

__all__ = ["MUTATIONS", "Base", "Mutant", "frames_of", "mutant", "pack"]

MAGIC = b"\x28\xb5\x2f\xfd"
LARGEST = 1_000_000
"""Bytes beyond which a mutant is cut, so that repeated doubling stays small."""
MOST_STEPS = 4

_INTERESTING = (
    b"\x00",
    b"\xff",
    b"\n",
    b"\r\n",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[" * 3000,
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    "\u2028\u0085\u202e".encode(),
    b"\\ud800",
    b"1e400",
    b"-0",
    b"9" * 5000,
    b"NaN",
    b"null",
    b"true",
    b'"seq":',
    b'"type":"tool/call"',
    b'"sourceEventSeqs":[[0,999999999]],',
    b'{"type":"session/end-seed","seq":9,"time":1,"data":{"inherited":true}}\n',
    b'{"type":"session","version":4,"id":"session-x","createdAt":0,"isSeeded":false}\n',
    MAGIC,
    b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd",
)


@dataclass(frozen=True)
class Base:
    """A sound log to begin with: its text, and the name the harness would give it."""

    origin: str
    text: bytes
    name: str


@dataclass(frozen=True)
class Mutant:
    """A damaged log."""

    name: str
    data: bytes
    kinds: tuple[str, ...]
    """The mutations made, in order."""


Mutation = Callable[[bytes, Random, Sequence[Base]], bytes]


def pack(text: bytes, random: Random) -> bytes:
    """Compress a text as the harness does, or as others do: a frame a line, a few lines, or one for all of it."""
    lines = text.splitlines(keepends=True) if b"\r" not in text else text.split(b"\n")
    if lines and not lines[0].endswith(b"\n"):
        lines = [line + b"\n" for line in lines[:-1]]
    compressor = zstandard.ZstdCompressor(
        level=random.choice([1, 3]),
        write_checksum=random.random() < 0.9,
        write_content_size=random.random() < 0.7,
    )
    most = random.choice([1, 1, 3, 20, len(lines) or 1])
    frames: list[bytes] = []
    at = 0
    while at < len(lines):
        count = 1 if at == 0 else random.randint(1, most)
        frames.append(compressor.compress(b"".join(lines[at : at + count])))
        at += count
    return b"".join(frames)


def frames_of(data: bytes) -> list[bytes]:
    """Cut sound compressed bytes into frames; what is none stays whole at the end."""
    frames: list[bytes] = []
    while data:
        decoder = zstandard.ZstdDecompressor().decompressobj()
        try:
            decoder.decompress(data)
        except zstandard.ZstdError:
            break
        if not decoder.eof:
            break
        rest = decoder.unused_data
        frames.append(data[: len(data) - len(rest)])
        data = rest
    return [*frames, data] if data else frames


def _place(data: bytes, random: Random) -> int:
    return random.randrange(len(data) + 1)


def _stretch(data: bytes, random: Random, most: int = 400) -> tuple[int, int]:
    start = _place(data, random)
    return start, min(start + random.choice([1, 2, 4, random.randint(1, most)]), len(data))


def _flip_bit(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 2, 8])):
        if changed:
            changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _set_byte(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    changed = bytearray(data)
    if changed:
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


def _delete(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    start, end = _stretch(data, random)
    return data[:start] + data[end:]


def _insert(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    at = _place(data, random)
    return data[:at] + random.choice(_INTERESTING) + data[at:]


def _overwrite(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    at = _place(data, random)
    piece = random.choice(_INTERESTING)
    return data[:at] + piece + data[at + len(piece) :]


def _insert_random(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    at = _place(data, random)
    return data[:at] + random.randbytes(random.choice([1, 3, 60, 4000])) + data[at:]


def _zero(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    start, end = _stretch(data, random, 5000)
    return data[:start] + bytes(end - start) + data[end:]


def _duplicate(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    start, end = _stretch(data, random, 5000)
    return data[:end] + data[start:end] + data[end:]


def _truncate(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    return data[: _place(data, random)]


def _behead(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    return data[_place(data, random) :]


def _swap(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    edges = sorted(_place(data, random) for _ in range(4))
    a, b, c, d = edges
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def _pieces(data: bytes) -> list[bytes]:
    """Cut into what the format is made of: frames, or lines with their line feeds."""
    if data.startswith(MAGIC):
        return frames_of(data)
    lines = data.split(b"\n")
    return [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _swap_pieces(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    pieces = _pieces(data)
    if len(pieces) > 1:
        first, second = random.sample(range(len(pieces)), 2)
        pieces[first], pieces[second] = pieces[second], pieces[first]
    return b"".join(pieces)


def _drop_piece(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    pieces = _pieces(data)
    if pieces:
        del pieces[random.randrange(len(pieces))]
    return b"".join(pieces)


def _repeat_piece(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    pieces = _pieces(data)
    if pieces:
        piece = random.choice(pieces)
        at = random.randrange(len(pieces) + 1)
        pieces[at:at] = [piece] * random.choice([1, 1, 2, 50])
    return b"".join(pieces)


def _splice(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    """Put pieces of another log in, packed as this one is or not."""
    other = random.choice(others).text
    if data.startswith(MAGIC) and random.random() < 0.9:
        other = pack(other, random)
    foreign = _pieces(other)
    pieces = _pieces(data)
    start = random.randrange(len(foreign) + 1)
    at = random.randrange(len(pieces) + 1)
    pieces[at:at] = foreign[start : start + random.randint(1, 6)]
    return b"".join(pieces)


def _concatenate(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    other = random.choice(others).text
    other = pack(other, random) if random.random() < 0.5 else other
    return data + other if random.random() < 0.8 else other + data


def _corrupt_header(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    """Change the first bytes, or the bytes that begin a frame."""
    if data.startswith(MAGIC) and random.random() < 0.7:
        frames = frames_of(data)
        chosen = random.randrange(len(frames))
        head = bytearray(frames[chosen])
        head[random.randrange(min(len(head), 18))] = random.randrange(256)
        frames[chosen] = bytes(head)
        return b"".join(frames)
    head = bytearray(data[:300])
    for _ in range(random.choice([1, 3])):
        if head:
            head[random.randrange(len(head))] = random.choice(b'{}[]":,0129\\n-e\x00\xff')
    return bytes(head) + data[300:]


def _line_endings(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    ending = random.choice([b"\r\n", b"\r", b"", b"\n\n", b"\x00\n", b"\n \t\r\n", b"\n\xef\xbb\xbf"])
    if data.startswith(MAGIC):
        frames = frames_of(data)
        chosen = random.randrange(len(frames))
        try:
            text = zstandard.ZstdDecompressor().decompressobj().decompress(frames[chosen])
        except zstandard.ZstdError:
            return data
        frames[chosen] = zstandard.ZstdCompressor().compress(text.replace(b"\n", ending))
        return b"".join(frames)
    return data.replace(b"\n", ending, random.choice([-1, 1, 3]))


def _in_a_frame(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    """Damage the text of one frame and pack it again: the checksum is right, the rows are not."""
    if not data.startswith(MAGIC):
        return _overwrite(data, random, others)
    frames = frames_of(data)
    chosen = random.randrange(len(frames))
    try:
        text = zstandard.ZstdDecompressor().decompressobj().decompress(frames[chosen])
    except zstandard.ZstdError:
        return data
    damage = random.choice([_flip_bit, _delete, _insert, _overwrite, _duplicate, _truncate])
    frames[chosen] = zstandard.ZstdCompressor(write_checksum=True).compress(damage(text, random, others))
    return b"".join(frames)


def _append_garbage(data: bytes, random: Random, others: Sequence[Base]) -> bytes:
    return data + random.choice([bytes(random.randrange(1, 3000)), random.randbytes(30), MAGIC, MAGIC + b"\x24\x05"])


MUTATIONS: Mapping[str, Mutation] = {
    "flip-bit": _flip_bit,
    "set-byte": _set_byte,
    "delete": _delete,
    "insert": _insert,
    "overwrite": _overwrite,
    "insert-random": _insert_random,
    "zero": _zero,
    "duplicate": _duplicate,
    "truncate": _truncate,
    "behead": _behead,
    "swap": _swap,
    "swap-pieces": _swap_pieces,
    "drop-piece": _drop_piece,
    "repeat-piece": _repeat_piece,
    "splice": _splice,
    "concatenate": _concatenate,
    "corrupt-header": _corrupt_header,
    "line-endings": _line_endings,
    "in-a-frame": _in_a_frame,
    "append-garbage": _append_garbage,
}
"""Every kind of damage."""


def mutant(bases: Sequence[Base], seed: int, number: int) -> Mutant:
    """Make the mutant of that number: a base, plain or compressed, and one to four mutations."""
    random = Random(f"{seed}/{number}")
    base = random.choice(bases)
    compressed = random.random() < 0.5
    data = pack(base.text, random) if compressed else base.text
    kinds: list[str] = []
    for _ in range(random.choice([1, 1, 1, 2, 3, MOST_STEPS])):
        kind = random.choice(list(MUTATIONS))
        data = MUTATIONS[kind](data, random, bases)[:LARGEST]
        kinds.append(kind)
    named_so = compressed if random.random() < 0.95 else not compressed
    return Mutant(base.name + (".zstd" if named_so else ""), data, tuple(kinds))
