"""Sessions of any number and size, written as fast as the disk takes them.

One turn of work is planned and rendered once, by the same writer as every other session; its lines then become a
template whose numbers, ids and results are filled in for each further turn and session.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

from analysis.synth import behaviours as act
from analysis.synth.chance import Chance
from analysis.synth.log import Header, compressor, header_line, log_path, write_atomically
from analysis.synth.run import Run, new_run
from analysis.synth.truth import SETTINGS, Extreme, Observed, PlantedFile, SessionTruth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from analysis.synth.log import Event, Version
    from analysis.synth.run import Call

DEFAULT_SESSIONS: Final = 20
DEFAULT_CALLS: Final = 200
DEFAULT_RESULT_BYTES: Final = 10_240
"""With the rows around it a call then takes about 12 kB."""

SCALE_SETTINGS: Final = SETTINGS[:2]
"""The settings under which the truth of a large corpus is stated: the default, and observing."""

_LEVEL: Final = 1
_TURN_CALLS: Final = 40
_VARIANTS: Final = 4
_LINE: Final = 64
_POOL_LINES: Final = 4096
_MARK: Final = "@result@"
_FIELDS: Final = re.compile(
    rb'"(?P<seq>seq0?)":(?P<seq_at>\d+)'
    rb'|"(?P<time>time0?)":(?P<time_at>\d+)'
    rb'|"turn":(?P<turn>\d+)'
    rb'|"sourceEventSeqs":(?P<sources>[\[\],\d]+)'
    rb"|(?P<id>[0-9a-f]{8})(?=-[0-9a-f]{4}-4)"
    rb"|(?<=call_\d\d_)(?P<call>[0-9a-f]{8})(?=[0-9a-f]{12})"
    rb"|(?P<mark>@result@)"
)
_NUMBER: Final = re.compile(rb"\d+")
_CWD: Final = "/home/dev/large"
_SYLLABLES: Final = ("ka", "lo", "mi", "ter", "son", "ba", "ri", "nu", "vel", "dor", "pa", "quin")
_ID_BITS: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class _Template:
    """Hold the batches of one turn with gaps.

    `fields` says for each batch what goes into its gaps, in order: an offset from the turn's first sequence number
    ("s"), from its first moment ("t"), the turn's number ("n"), an id ("i") or a result ("r").
    """

    batches: tuple[bytes, ...]
    fields: tuple[tuple[tuple[str, int], ...], ...]
    seqs: int
    span: int


@dataclass(frozen=True, slots=True)
class _Variant:
    """Hold what the sessions of one kind share: the templates of their turns and their truth."""

    turns: tuple[_Template, ...]
    truth: SessionTruth


def _work(run: Run, calls: int, host: str) -> None:
    """Plan one turn: reads and edits, one host asked too often, a test that fails four times."""
    plan: list[Call] = [act.read(f"src/module_{number}.py") for number in range(10)]
    pages = 17 if host.startswith("wide") else 12
    plan.extend(act.curl(act.Target(host, "/v1/rows", f"page={number}")) for number in range(pages))
    for number in range(4):
        plan.append(act.bash("make check", exit_code=1))
        plan.append(act.edit("src/main.py", number))
    while len(plan) < _TURN_CALLS:
        plan.append(act.tool("grep", {"pattern": f"name_{len(plan)}", "path": "src"}))
    run.human("Go on with the next part.")
    for call in plan[:calls]:
        body = _MARK + call.text[call.text.index("\n[exit code") :] if "[exit code" in call.text else _MARK
        run.step(replace(call, text=body), reasoning="The next thing to look at follows from the last.")
    run.say("This part is done.")


def _begin(number: int, seed: int) -> tuple[Run, str]:
    """Begin the session a variant's turns are rendered from, and name the host it asks."""
    name = f"variant-{number}"
    run = new_run(
        Chance(f"{seed}/scale/{name}"),
        Header(id=name, created_at=0, cwd=_CWD),
        name=name,
        summary="made for its size: in every turn a host is asked too often and a test fails four times",
        label="unknown",
        model=("deepseek-official", "deepseek-v4-flash"),
        tools=("bash", "read", "edit", "grep"),
    )
    return run, f"{'wide' if number % 2 else 'api'}-{number}.example.org"


def _variant(number: int, calls: int, seed: int, version: Version) -> _Variant:
    """Plan and render the turns that differ: the first, a later full one, and the last when it is shorter."""
    full, rest = divmod(calls, _TURN_CALLS)
    run, host = _begin(number, seed)
    ends: list[Event] = []
    for size in [_TURN_CALLS] * min(full, 2) + [rest] * bool(rest):
        _work(run, size, host)
        ends.append(run.log.events[-1])
    rendered = run.log.render(version)
    templates = list(_templates(rendered.batches, [rendered.seqs[event] for event in ends]))
    repeated = templates[1:2] * (full - 1) if full > 1 else []
    turns = [templates[0], *repeated, *(templates[-1:] if rest and full else [])]
    parts: list[SessionTruth] = []
    for size in [_TURN_CALLS] * full + [rest] * bool(rest):
        if parts and size == _TURN_CALLS:
            parts.append(parts[0])
            continue
        alone, host = _begin(number, seed)
        _work(alone, size, host)
        parts.append(alone.truth((), dict.fromkeys(alone.call_events, 0), SCALE_SETTINGS))
    return _Variant(tuple(turns), _joined(parts))


def _joined(turns: Sequence[SessionTruth]) -> SessionTruth:
    """Add up the truth of turns, each of which a human word begins: a turn shows the same wherever it stands."""
    calls = sum(turn.calls for turn in turns)
    failed_by: dict[str, int] = {}
    for turn in turns:
        for key, count in turn.failed_by.items():
            failed_by[key] = failed_by.get(key, 0) + count
    return replace(
        turns[0],
        turns=len(turns),
        calls=calls,
        tracked=sum(turn.tracked for turn in turns),
        ok=sum(turn.ok for turn in turns),
        failed=sum(turn.failed for turn in turns),
        failed_by=failed_by,
        lines=sum(turn.lines for turn in turns),
        short_lines=sum(turn.short_lines for turn in turns),
        call_seqs=(),
        observed={
            setting.name: _observed([turn.observed[setting.name] for turn in turns], calls)
            for setting in SCALE_SETTINGS
        },
    )


def _observed(turns: Sequence[Observed], calls: int) -> Observed:
    return Observed(
        ok=sum(turn.ok for turn in turns),
        failed=sum(turn.failed for turn in turns),
        failed_text_only=0,
        longest_streak=_largest([turn.longest_streak for turn in turns]),
        peak=_largest([turn.peak for turn in turns]),
        events=tuple(
            replace(event, call=event.call + number * _TURN_CALLS)
            for number, turn in enumerate(turns)
            for event in turn.events
        ),
        asks=sum(turn.asks for turn in turns),
        denials=sum(turn.denials for turn in turns),
        false_rejections=sum(turn.false_rejections for turn in turns),
        gate_margin=min((turn.gate_margin for turn in turns if turn.gate_margin is not None), default=None),
        first_trips={
            # A shorter last turn reaches no stage that the first does not.
            stage: replace(trip, calls_after=calls - trip.call - 1)
            for stage, trip in turns[0].first_trips.items()
        },
    )


def _largest(extremes: Sequence[Extreme | None]) -> Extreme | None:
    found = [extreme for extreme in extremes if extreme is not None]
    return max(found, key=lambda extreme: extreme.count) if found else None


def _templates(batches: Sequence[bytes], last_seqs: Sequence[int]) -> Iterator[_Template]:
    """Cut rendered batches into one template per turn; `last_seqs` are the numbers of the rows that end them."""
    rest = list(batches)
    first = 0
    for last in last_seqs:
        count = next((at for at, batch in enumerate(rest) if _first(batch, "seq") > last), len(rest))
        own, rest = rest[:count], rest[count:]
        start = _first(own[0], "time")
        made = [_template(batch, first, start) for batch in own]
        span = max(offset for _, fields in made for kind, offset in fields if kind == "t")
        yield _Template(tuple(text for text, _ in made), tuple(fields for _, fields in made), last + 1 - first, span)
        first = last + 1


def _first(batch: bytes, name: str) -> int:
    """Return the first sequence number or time in a batch."""
    for match in _FIELDS.finditer(batch):
        value = match[f"{name}_at"]
        if value is not None:
            return int(value)
    raise AssertionError(name)


def _template(batch: bytes, first_seq: int, start: int) -> tuple[bytes, tuple[tuple[str, int], ...]]:
    """Put gaps where a batch holds numbers, ids and results."""
    fields: list[tuple[str, int]] = []

    def number(match: re.Match[bytes]) -> bytes:
        fields.append(("s", int(match[0]) - first_seq))
        return b"%d"

    def gap(match: re.Match[bytes]) -> bytes:
        match match.lastgroup:
            case "seq_at":
                fields.append(("s", int(match["seq_at"]) - first_seq))
                return b'"%b":%%d' % match["seq"]
            case "time_at":
                fields.append(("t", int(match["time_at"]) - start))
                return b'"%b":%%d' % match["time"]
            case "turn":
                fields.append(("n", 0))
                return b'"turn":%d'
            case "sources":
                return b'"sourceEventSeqs":' + _NUMBER.sub(number, match["sources"])
            case "mark":
                fields.append(("r", 0))
                return b"%b"
            case _:
                fields.append(("i", int(match[0], 16)))
                return b"%08x"

    return _FIELDS.sub(gap, batch.replace(b"%", b"%%")), tuple(fields)


def _pool(seed: int) -> bytes:
    """Draw the text results are cut from: lines of one length, so that a cut never splits an escape."""
    chance = Chance(f"{seed}/scale/pool")
    words = [f"{chance.pick(_SYLLABLES)}{chance.pick(_SYLLABLES)}{chance.hexadecimal(2)}" for _ in range(512)]
    lines: list[str] = []
    for number in range(_POOL_LINES):
        line = f"{number:04d} " + " ".join(chance.pick(words) for _ in range(12))
        lines.append(line[: _LINE - 2] + "\\n")
    return "".join(lines).encode()


def _session_batches(variant: _Variant, session: int, created: int, pool: bytes, result_bytes: int) -> Iterator[bytes]:
    """Yield the plain append batches of one session."""
    first_seq, start = 0, created
    length = max(result_bytes // _LINE, 1) * _LINE
    places = len(pool) // _LINE - length // _LINE
    cut = session * 7919
    for number, turn in enumerate(variant.turns, 1):
        tag = (session << 12 | number) & _ID_BITS
        for text, fields in zip(turn.batches, turn.fields, strict=True):
            values: list[int | bytes] = []
            for kind, offset in fields:
                if kind == "s":
                    values.append(first_seq + offset)
                elif kind == "t":
                    values.append(start + offset)
                elif kind == "i":
                    values.append(offset ^ tag)
                elif kind == "n":
                    values.append(number)
                else:
                    cut += 613
                    place = cut % places * _LINE
                    values.append(pool[place : place + length])
            yield text % tuple(values)
        first_seq += turn.seqs
        start += turn.span + 1000


def write_scale(
    out: Path, sessions: int, seed: int, version: Version, *, plain: bool, calls: int, result_bytes: int, epoch: int
) -> tuple[SessionTruth, ...]:
    """Write `sessions` sessions of `calls` calls each and return their truth."""
    pool = _pool(seed)
    pool *= -(-2 * result_bytes // len(pool)) or 1
    variants = [_variant(number, calls, seed, version) for number in range(min(_VARIANTS, sessions))]
    frames = compressor(_LEVEL)
    truths: list[SessionTruth] = []
    for number in range(sessions):
        variant = variants[number % len(variants)]
        chance = Chance(f"{seed}/scale/{number}")
        header = Header(id=f"session-{chance.uuid()}", created_at=epoch + number * 60_000, cwd=_CWD)
        path = log_path(out, header, version, plain=plain)
        batches = _session_batches(variant, number, header.created_at, pool, result_bytes)
        pieces = chain((header_line(header, version),), batches)
        write_atomically(path, pieces if plain else map(frames.compress, pieces))
        file = PlantedFile(path.relative_to(out).as_posix(), "ok")
        truths.append(replace(variant.truth, name=f"scale-{number}", id=header.id, files=(file,)))
    return tuple(truths)
