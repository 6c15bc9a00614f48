"""Session events to facts: the settings-independent record of what one agent did, in the order it happened.

Facts stream: a call is given out once its outcome is known and the rows it came with are read, so memory holds what is
in flight, not the file. What a fork inherits is dropped as it is read; whoever feeds the lines says where its own part
begins (`MarkerScan`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Literal, NoReturn, TypeAlias, cast, overload

import msgspec

from analysis.sessions.events import (
    PACKED_TYPES,
    ApprovalAsked,
    ApprovalDecided,
    AssistantMessage,
    CallStart,
    Event,
    HookResult,
    RequestHeader,
    ResultEvent,
    SeedMarker,
    StepStart,
    UserMessage,
    UsualRow,
    is_known_type,
    packed_parts,
    read_event,
    read_row,
)
from analysis.sessions.header import Header
from analysis.sessions.outcomes import (
    OPEN,
    CallSigns,
    Outcome,
    is_own_denial,
    outcome_from_log,
    outcome_of,
    recorded_exit_code,
)
from analysis.sessions.report import ReadReport
from analysis.sessions.rows import BadRowError, Row, decode_value
from analysis.sessions.session_facts import ResultSource, SessionFacts
from breaker.ecmascript import parse_json
from breaker.measures import Call
from breaker.messages import ASK_OPENING
from breaker.rulesets import Ruleset

__all__ = [
    "ENDLESS_PREFIX",
    "GAP",
    "IMPORT",
    "INHERITED_RESULT",
    "LATE",
    "MARKER",
    "ORPHAN",
    "REMARK_KINDS",
    "REPEATED",
    "RESUME",
    "SECOND_RESULT",
    "UNKNOWN_EVENT",
    "UNTOLD",
    "CallFact",
    "Fact",
    "FactBuilder",
    "MarkerScan",
    "MessageFact",
    "OnRemark",
    "SettleFact",
    "StepFact",
    "TurnFact",
    "arguments_of",
]


GAP: Final = "gap"
"""Sequence numbers are missing before this row."""
LATE: Final = "late"
"""A row whose number belongs further up."""
REPEATED: Final = "repeated"
"""A row whose number was there already; it is left out."""
ORPHAN: Final = "orphan-result"
"""A result that belongs to no call."""
SECOND_RESULT: Final = "second-result"
"""A further result of a call that has one; the first counts."""
INHERITED_RESULT: Final = "inherited-result"
"""A result whose call is the parent's."""
UNKNOWN_EVENT: Final = "unknown-event"
"""A row of a type outside the vocabulary, as plugins write."""
MARKER: Final = "stray-marker"
"""A marker of inheritance in a log that inherits nothing."""
RESUME: Final = "resume"
"""A process opened the session again here."""
ENDLESS_PREFIX: Final = "endless-prefix"
"""A fork in which no marker ends what it inherits."""
IMPORT: Final = "import"
"""A log that begins with history of another origin."""

REMARK_KINDS: Final = (
    GAP,
    LATE,
    REPEATED,
    ORPHAN,
    SECOND_RESULT,
    INHERITED_RESULT,
    UNKNOWN_EVENT,
    MARKER,
    RESUME,
    ENDLESS_PREFIX,
    IMPORT,
)
"""Every kind of remark a close reading makes."""

_OWN_REMARKS: Final = frozenset({ORPHAN, SECOND_RESULT, INHERITED_RESULT, MARKER, RESUME})
"""What of an inherited part is the parent's to tell."""

_DIGEST_BYTES = 8
_FETCH_FILE_TOOL = "web_fetch_file"
_FORKED_CLOSER = "forked-tool-result-"
_NOT_STARTED = "TOOL_NOT_STARTED"
_MARKER = "session/end-seed"
_REPAIR_CLOSER = "interrupted-tool-result-"
_MANY_OPEN = 64
"""Open calls up to which they are looked through one by one; no model makes more at once."""


class CallFact(msgspec.Struct):
    """One call that stands in the session's own part of the log."""

    index: int
    """0-based over all own call rows, nested and untracked ones too."""
    seq: int
    time: float | None
    """Epoch milliseconds."""
    turn: int
    """The human turn; 0 before the first human message."""
    recorded_turn: int | None
    """The harness' own turn number."""
    step: int | None
    call: Call
    raw_arguments: str | None
    """The model's argument text, where it is text."""
    call_id: str
    nested: bool
    outcome: Outcome = OPEN
    resolved: bool = False
    other_outcomes: tuple[Outcome, ...] = ()
    """The outcome under each further ruleset that was asked for, in order; empty where the log holds no result."""


class _Untold(Sequence[str]):
    """The texts of a result that are not kept. An empty text in their place would be a wrong one."""

    def _refuse(self) -> NoReturn:
        message = "the texts of results are not kept here"
        raise LookupError(message)

    def __len__(self) -> int:
        self._refuse()

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        self._refuse()


UNTOLD = _Untold()
"""Stands for texts nobody asked for."""


class SettleFact(msgspec.Struct):
    """A call's result stands here, whatever became of the call."""

    fact: CallFact
    seq: int
    time: float | None
    is_error: bool
    """The flag as recorded."""
    texts: Sequence[str] = ()
    """The texts of the result's content blocks; not kept longer than the fact."""
    closer: bool = False
    """No result of the tool: written when a log was repaired, for a call whose outcome is unknown."""
    told_length: int | None = None
    """The length of the text, where the texts themselves are not there."""

    @property
    def length(self) -> int:
        """Characters of the result's text."""
        if self.told_length is not None:
            return self.told_length
        return len(self.texts[0]) if len(self.texts) == 1 else len(self.text)

    @property
    def text(self) -> str:
        """The result's text, as the guard quotes it."""
        return "\n".join(text for text in self.texts if text)


class TurnFact(msgspec.Struct):
    """The guard's state is cleared here; a human message may open a turn."""

    seq: int
    time: float | None
    cause: Literal["human", "resume", "import"]
    turn: int
    """The human turn from here on."""


class MessageFact(msgspec.Struct):
    """The model spoke."""

    seq: int
    time: float | None
    tokens: int | None
    """Input, cache reads and output together."""
    lines: int | None = None
    """Lines of reasoning and text that are not blank; None where nobody asked for them."""
    short_lines: int | None = None
    """Of those, the ones that are short phrases."""


class StepFact(msgspec.Struct):
    """A model step begins."""

    seq: int
    time: float | None
    recorded_turn: int | None
    step: int | None


Fact: TypeAlias = CallFact | SettleFact | TurnFact | MessageFact | StepFact


_NO_SIGNS = CallSigns()
_REWRITTEN: Final = frozenset({UserMessage, AssistantMessage, ResultEvent})
"""What a row may say anew without adding anything."""


class _OpenCall:
    __slots__ = ("fact", "signs")

    def __init__(self, fact: CallFact) -> None:
        self.fact = fact
        self.signs = _NO_SIGNS

    def own_signs(self) -> CallSigns:
        """Return the signs of this call, to be added to."""
        if self.signs is _NO_SIGNS:
            self.signs = CallSigns()
        return self.signs


class _LastOpen:
    """Finds the last open call of an id or a tool, where very many are open."""

    def __init__(self, opened: Mapping[int, _OpenCall]) -> None:
        self._opened = opened
        self._of_id: dict[str, list[int]] = {}
        self._of_tool: dict[str, list[int]] = {}
        for seq, pending in opened.items():
            self.add(seq, pending.fact)

    def add(self, seq: int, fact: CallFact) -> None:
        """Take a call that was just opened."""
        self._of_id.setdefault(fact.call_id, []).append(seq)
        self._of_tool.setdefault(fact.call.name, []).append(seq)

    def find(self, call_id: str | None, tool: str) -> _OpenCall | None:
        """Return the last one of an id, or of a tool where no id is given; None where none is open."""
        stack = self._of_tool.get(tool, []) if call_id is None else self._of_id.get(call_id, [])
        while stack and stack[-1] not in self._opened:
            stack.pop()
        return self._opened[stack[-1]] if stack else None


_Key: TypeAlias = tuple[int | None, int | None, str | None]


OnRemark: TypeAlias = Callable[[str, str, int], None]
"""Is told of an oddity in the row at hand: its kind, what it is, the row's number."""


class _Sequence:
    """Follows sequence numbers: what was seen, what is missing, what comes twice."""

    def __init__(self, on_remark: OnRemark | None = None) -> None:
        self.next = 0
        self._on_remark = on_remark
        self._numbered = False
        self._gap_starts: list[int] = []
        self._gap_ends: list[int] = []
        self.jumps = 0
        self.repeated = 0
        self.late = 0

    def accept(self, seq: int | None, parts: int) -> int | None:
        """Return the row's number, or None where a row of that number was there already."""
        if seq is None:
            seq = self.next
        else:
            self._numbered = True
        if seq == self.next:
            self.next = seq + parts
            return seq
        if seq > self.next:
            self._gap_starts.append(self.next)
            self._gap_ends.append(seq)
            self.jumps += 1
            if self._on_remark is not None:
                missing = f"{self.next} is" if seq == self.next + 1 else f"{self.next} to {seq - 1} are"
                self._on_remark(GAP, f"number {missing} missing before this row", seq)
        else:
            if not self._fill(seq):
                self.repeated += 1
                if self._on_remark is not None:
                    self._on_remark(REPEATED, f"a row numbered {seq} came before; this one is left out", seq)
                return None
            self.late += 1
            if self._on_remark is not None:
                self._on_remark(LATE, f"number {seq} comes late; the row counts where it stands", seq)
            return seq
        self.next = seq + parts
        return seq

    def skip(self) -> None:
        """Pass over a row that cannot be read: where numbers were stripped, it had one all the same."""
        if not self._numbered:
            self.next += 1

    def _fill(self, seq: int) -> bool:
        position = bisect_right(self._gap_starts, seq) - 1
        if position < 0 or seq >= self._gap_ends[position]:
            return False
        start, end = self._gap_starts[position], self._gap_ends[position]
        pieces = [(first, last) for first, last in ((start, seq), (seq + 1, end)) if first < last]
        self._gap_starts[position : position + 1] = [first for first, _ in pieces]
        self._gap_ends[position : position + 1] = [last for _, last in pieces]
        return True


def _accept(sequence: _Sequence, data: bytes) -> tuple[Row | UsualRow, int | None]:
    """Read a line and number it; the number is None where a row of it was there already.

    Raises:
        BadRowError: it is no record.
    """
    try:
        row = read_row(data)
        parts = packed_parts(row.data()) if isinstance(row, Row) and row.type in PACKED_TYPES else 1
    except BadRowError:
        sequence.skip()
        raise
    return row, sequence.accept(row.seq, parts)


class MarkerScan:
    """Finds where a fork's own part begins. Feed it every line after the header."""

    def __init__(self) -> None:
        self._sequence = _Sequence()

    def ends_prefix(self, data: bytes) -> bool:
        """Tell whether a line is an inherited marker that counts; of several the last ends what is inherited."""
        try:
            row, seq = _accept(self._sequence, data)
            kind = row.type if isinstance(row, Row) else row.kind
            return seq is not None and kind == _MARKER and read_event(row) == SeedMarker(inherited=True)
        except BadRowError:
            return False


class FactBuilder:
    """Takes a session's lines in file order and gives out its facts."""

    def __init__(
        self,
        header: Header,
        report: ReadReport,
        ruleset: Ruleset,
        *,
        source: ResultSource = "rebuilt",
        digests: bool = False,
        short_line: int | None = None,
        other_rulesets: Sequence[Ruleset] = (),
        on_remark: OnRemark | None = None,
        keep_texts: bool = True,
    ) -> None:
        self.session = SessionFacts(header=header, fork=header.is_fork, imported=header.is_import)
        self._report = report
        self._ruleset = ruleset
        self._other_rulesets = tuple(other_rulesets)
        self._outcome_source: ResultSource = source
        self._digests = digests
        self._keep_texts = keep_texts
        self._short_line = short_line
        self.seq = 0
        """Number of the row that was added last, the one that was next where it could not be read."""
        self._on_remark = on_remark
        self._sequence = _Sequence(on_remark)
        self.queue: deque[Fact] = deque()
        """Facts that are not given out yet."""
        self._inheriting = header.is_fork
        self._open: dict[int, _OpenCall] = {}
        self._open_by_key: dict[_Key, deque[int]] = {}
        self._last_open_index: _LastOpen | None = None
        self._settled: dict[int, str] = {}
        self._settled_keys: set[_Key] = set()
        self._inherited: dict[int, str] = {}
        self._inherited_keys: set[_Key] = set()
        self._last_call: _OpenCall | None = None
        self._hook_blocks_next_result = False
        self._asked: dict[str, CallSigns] = {}
        self._models: set[str] = set()
        self._spoken_since_human = True
        self._unknown_types: dict[str, int] = {}
        self._orphans = 0
        self._second_results = 0
        self._ignored_closers = 0

    # -- rows in, facts out --------------------------------------------------------------------------------------

    @property
    def awaits_marker(self) -> bool:
        """Tell whether the log begins with inherited rows that end at a marker: there `end_prefix` must be called."""
        return self._inheriting and self.session.header.seed_length is None

    def add(self, data: bytes) -> None:
        """Take one line.

        Raises:
            BadRowError: it is no record, or of a known type but not of its shape; it is not counted.
        """
        self.seq = self._sequence.next
        row, seq = _accept(self._sequence, data)
        if seq is not None:
            self._add(row, seq)

    def add_rows(self, rows: Sequence[UsualRow], on_bad: Callable[[int, BadRowError], None]) -> None:
        """Take usual rows that follow each other.

        Args:
            rows: the rows.
            on_bad: told the place among them of one that is of a known type but not of its shape; it is not counted.
        """
        sequence = self._sequence
        for place, row in enumerate(rows):
            self.seq = sequence.next
            seq = sequence.accept(row.seq, 1)
            if seq is None:
                continue
            try:
                self._add(row, seq)
            except BadRowError as error:
                on_bad(place, error)

    def _add(self, row: Row | UsualRow, seq: int) -> None:
        self.seq = seq
        if self._inheriting:
            self._leave_prefix_by_length(seq)
        event = row.event() if isinstance(row, UsualRow) else read_event(row)
        self._report.rows += 1
        if event is not None:
            if type(event) not in _REWRITTEN or row.appended:
                self._take(seq, row, event)
        elif isinstance(row, Row) and not is_known_type(row.type):
            self._unknown_types[row.type] = self._unknown_types.get(row.type, 0) + 1
            self._remark(UNKNOWN_EVENT, f"an event of the unknown type {row.type}, passed over")
        time = row.time
        if time is not None and type(event) is not SeedMarker:
            session = self.session
            if session.first_time is None:
                session.first_time = time
            session.last_time = time

    def drain(self) -> Sequence[Fact]:
        """Give out the facts whose outcome is known, in order."""
        queue = self.queue
        if self._inheriting:
            queue.clear()
        known: list[Fact] = []
        while queue:
            head = queue[0]
            if type(head) is CallFact and not head.resolved:
                break
            known.append(queue.popleft())
        return known

    def finish(self) -> Sequence[Fact]:
        """End the session: what is still open stays open, and the notes are written."""
        if self._inheriting:
            self.end_prefix()
            length = self.session.header.seed_length
            if length is None or self._sequence.next < length:
                self._report.note(ENDLESS_PREFIX, "the inherited part never ends: nothing of this fork is its own")
        for pending in self._open.values():
            pending.fact.resolved = True
        self._open.clear()
        self._write_notes()
        return self.drain()

    # -- forks ---------------------------------------------------------------------------------------------------

    def _leave_prefix_by_length(self, seq: int) -> None:
        length = self.session.header.seed_length
        if length is not None and seq >= length:
            self.end_prefix()

    def end_prefix(self) -> None:
        """Drop everything read so far: it is the parent's, and counts in the parent's file."""
        self._inheriting = False
        self._inherited |= self._settled
        self._inherited |= {seq: pending.fact.call_id for seq, pending in self._open.items()}
        self._inherited_keys |= self._settled_keys | self._open_by_key.keys()
        self.queue.clear()
        self._open.clear()
        self._open_by_key.clear()
        self._settled.clear()
        self._settled_keys.clear()
        self._last_call = None
        self._hook_blocks_next_result = False
        self._asked.clear()
        self._spoken_since_human = True
        self._orphans = self._second_results = 0
        session = self.session
        session.turns = session.calls = session.not_started = 0
        session.first_time = session.last_time = None
        session.recorded_under_breaker = False
        session.digests.clear()

    def _mark(self, seq: int, row: Row | UsualRow, marker: SeedMarker) -> None:
        if marker.inherited:
            if self.session.imported:
                self._reset(seq, row, "import")
            elif not self.session.fork:
                message = "an inherited marker in a log that says it inherits nothing"
                if self._on_remark is None:
                    self._report.note(MARKER, message)
                self._remark(MARKER, message)
        elif not self._inheriting:
            self._remark(RESUME, "a process opened the session again here; the guard's state was cleared")
            self._reset(seq, row, "resume")

    def _reset(self, seq: int, row: Row | UsualRow, cause: Literal["human", "resume", "import"]) -> None:
        self.queue.append(TurnFact(seq=seq, time=row.time, cause=cause, turn=self.session.turns))

    # -- events --------------------------------------------------------------------------------------------------

    def _take(self, seq: int, row: Row | UsualRow, event: Event) -> None:
        if type(event) is StepStart:
            self.queue.append(StepFact(seq, row.time, event.turn, event.step))
        elif type(event) is CallStart:
            self._start_call(seq, row, event)
        elif type(event) is ResultEvent:
            self._settle(seq, row, event)
        elif type(event) is AssistantMessage:
            self._model_message(seq, row, event)
        elif type(event) is UserMessage:
            self._user_message(seq, row, event)
        elif type(event) is ApprovalAsked:
            self._asked_about(event)
        elif type(event) is ApprovalDecided:
            signs = self._asked.get(event.approval_id)
            if signs is not None:
                signs.decided.setdefault(event.approval_id, event.outcome)
        elif type(event) is HookResult:
            self._hook(event)
        elif type(event) is SeedMarker:
            self._mark(seq, row, event)
        elif type(event) is RequestHeader:
            if _FETCH_FILE_TOOL in event.tools:
                self.session.offers_fetch_file = True
            self._note_model(event.model)

    def _note_model(self, model: str | None) -> None:
        if model is not None and model not in self._models:
            self._models.add(model)
            self.session.models.append(model)

    def _model_message(self, seq: int, row: Row | UsualRow, event: AssistantMessage) -> None:
        self._spoken_since_human = True
        self._note_model(event.model)
        if self._digests:
            self._digest(row, "assistant", event.message_id, event.text)
        message = MessageFact(seq, row.time, event.tokens)
        limit = self._short_line
        if limit is not None:
            lengths = [len(line) for raw in event.text.splitlines() if (line := raw.strip())]
            message.lines = len(lengths)
            message.short_lines = sum(length <= limit for length in lengths)
        self.queue.append(message)

    def _user_message(self, seq: int, row: Row | UsualRow, message: UserMessage) -> None:
        if self._digests:
            self._digest(row, "user", message.message_id, message.text)
        if message.breaker_notice:
            self.session.recorded_under_breaker = True
        if not message.human:
            return
        if self._spoken_since_human:
            self.session.turns += 1
            self._spoken_since_human = False
        self._reset(seq, row, "human")

    def _start_call(self, seq: int, row: Row | UsualRow, start: CallStart) -> None:
        self._spoken_since_human = True
        arguments, raw = _arguments(start)
        if start.name == _FETCH_FILE_TOOL:
            self.session.offers_fetch_file = True
        session = self.session
        call = Call(start.name, arguments)
        fact = CallFact(
            session.calls, seq, row.time, session.turns, start.turn, start.step, call, raw, start.call_id, start.nested
        )
        if self._digests:
            self._digest(row, "call", start.name, raw if raw is not None else repr(arguments))
        session.calls += 1
        pending = _OpenCall(fact)
        self._open[seq] = pending
        key = _key(start)
        waiting = self._open_by_key.get(key)
        if waiting is None:
            self._open_by_key[key] = deque((seq,))
        else:
            waiting.append(seq)
        if self._last_open_index is not None:
            self._last_open_index.add(seq, fact)
        self._last_call = pending
        self.queue.append(fact)

    def _hook(self, hook: HookResult) -> None:
        if hook.point == "PreToolUse":
            if self._last_call is not None and hook.decision in {"block", "deny", "ask"}:
                signs = self._last_call.own_signs()
                if not signs.hook_before or signs.hook_before == "ask":
                    signs.hook_before = hook.decision
        elif hook.point == "PostToolUse" and hook.decision in {"block", "deny"}:
            self._hook_blocks_next_result = True

    def _asked_about(self, asked: ApprovalAsked) -> None:
        pending = self._last_open(asked)
        if pending is not None:
            signs = pending.own_signs()
            signs.asked.append((asked.approval_id, asked.reason))
            self._asked[asked.approval_id] = signs
        if asked.reason.startswith(ASK_OPENING):
            self.session.recorded_under_breaker = True

    def _last_open(self, asked: ApprovalAsked) -> _OpenCall | None:
        if len(self._open) <= _MANY_OPEN:
            self._last_open_index = None
            for pending in reversed(self._open.values()):
                fact = pending.fact
                if fact.call.name == asked.tool if asked.call_id is None else fact.call_id == asked.call_id:
                    return pending
            return None
        if self._last_open_index is None:
            self._last_open_index = _LastOpen(self._open)
        return self._last_open_index.find(asked.call_id, asked.tool)

    def _settle(self, seq: int, row: Row | UsualRow, result: ResultEvent) -> None:
        blocked = self._hook_blocks_next_result
        self._hook_blocks_next_result = False
        if self._digests:
            self._digest(row, "result", result.message_id, str(result.is_error), result.text)
        code = None if result.error is None else _error_code(result)
        pending = None if code == _NOT_STARTED else self._join(row, result)
        if pending is None:
            self._unjoined(row, result)
            return
        if blocked:
            pending.own_signs().hook_after_blocks = True
        fact = pending.fact
        outcome = self._outcome(pending, result, self._ruleset)
        if self._other_rulesets:
            others = (self._outcome(pending, result, ruleset) for ruleset in self._other_rulesets)
            fact.other_outcomes = tuple(others)
        if outcome.kind == "denied" or is_own_denial(result):
            self.session.recorded_under_breaker = True
        fact.outcome = outcome
        fact.resolved = True
        closer = result.message_id.startswith(_REPAIR_CLOSER) or code == "TOOL_OUTCOME_UNKNOWN"
        is_error = result.is_error is True
        settle = SettleFact(fact, seq, row.time, is_error, result.texts, closer)
        if not self._keep_texts:
            settle.told_length = settle.length
            settle.texts = UNTOLD
        self.queue.append(settle)

    def _outcome(self, pending: _OpenCall, result: ResultEvent, ruleset: Ruleset) -> Outcome:
        if self._outcome_source == "log":
            outcome = outcome_from_log(pending.fact.call, result, ruleset)
        else:
            outcome = outcome_of(pending.fact.call, pending.signs, result, ruleset)
        recorded = recorded_exit_code(result) if result.meta and outcome.exit_code is None else None
        return outcome if recorded is None else msgspec.structs.replace(outcome, exit_code=recorded)

    def _join(self, row: Row | UsualRow, result: ResultEvent) -> _OpenCall | None:
        """Find the call a result belongs to: by the seq it follows from, else the oldest open one of its key."""
        call_id = result.call_id
        for source in row.sources:
            pending = self._open.get(source)
            if pending is not None and (call_id is None or call_id == pending.fact.call_id):
                return self._close(source)
        if _follows(row, result, self._settled) or _follows(row, result, self._inherited):
            return None
        key = _key(result)
        waiting = self._open_by_key.get(key)
        return self._close(waiting[0]) if waiting else None

    def _close(self, seq: int) -> _OpenCall:
        pending = self._open.pop(seq)
        fact = pending.fact
        key = _fact_key(fact)
        waiting = self._open_by_key[key]
        # What is closed in the middle goes when it comes to an end; a search for it could take long.
        while waiting and waiting[0] not in self._open:
            waiting.popleft()
        while waiting and waiting[-1] not in self._open:
            waiting.pop()
        if not waiting:
            del self._open_by_key[key]
        self._settled[seq] = fact.call_id
        self._settled_keys.add(key)
        for approval, _ in pending.signs.asked:
            if self._asked.get(approval) is pending.signs:
                del self._asked[approval]
        return pending

    def _unjoined(self, row: Row | UsualRow, result: ResultEvent) -> None:
        key = _key(result)
        if result.message_id.startswith(_FORKED_CLOSER) or _follows(row, result, self._inherited):
            self._ignored_closers += 1
            self._remark(INHERITED_RESULT, "a result of an inherited call, ignored")
        elif _error_code(result) == _NOT_STARTED:
            self.session.not_started += 1
        elif _follows(row, result, self._settled) or key in self._settled_keys:
            self._second_results += 1
            self._remark(SECOND_RESULT, "a second result of a call, ignored")
        elif key in self._inherited_keys:
            self._ignored_closers += 1
            self._remark(INHERITED_RESULT, "a result of an inherited call, ignored")
        else:
            self._orphans += 1
            self._remark(ORPHAN, "a result without a call")

    # -- what is told at the end ---------------------------------------------------------------------------------

    def _digest(self, row: Row | UsualRow, kind: str, *texts: str) -> None:
        from hashlib import blake2b  # here, since only sessions of one id are told apart by them

        digest = blake2b(f"{kind}\0{row.time}".encode(), digest_size=_DIGEST_BYTES)
        for text in texts:
            digest.update(b"\0")
            digest.update(text.encode("utf-8", "surrogatepass"))
        self.session.digests.append(digest.digest())

    def _remark(self, kind: str, message: str) -> None:
        if self._on_remark is not None and not (self._inheriting and kind in _OWN_REMARKS):
            self._on_remark(kind, message, self.seq)

    def _write_notes(self) -> None:
        if self._on_remark is None:
            self._write_counts()
        if self.session.imported:
            self._report.note(IMPORT, "imported history: no parent file, all of it counts")

    def _write_counts(self) -> None:
        """Sum up in notes what a close reading remarks one by one."""
        sequence = self._sequence
        counted = (
            (GAP, sequence.jumps, "gap in the sequence numbers", "gaps in the sequence numbers"),
            (LATE, sequence.late, "row out of order", "rows out of order"),
            (
                REPEATED,
                sequence.repeated,
                "row with a sequence number seen before, left out",
                "rows with a sequence number seen before, left out",
            ),
            (ORPHAN, self._orphans, "result without a call", "results without a call"),
            (
                SECOND_RESULT,
                self._second_results,
                "second result of a call, ignored",
                "second results of calls, ignored",
            ),
            (
                INHERITED_RESULT,
                self._ignored_closers,
                "result of an inherited call, ignored",
                "results of inherited calls, ignored",
            ),
        )
        for kind, count, one, many in counted:
            if count:
                self._report.note(kind, f"{count} {one if count == 1 else many}")
        if self._unknown_types:
            total = sum(self._unknown_types.values())
            kinds = ", ".join(sorted(self._unknown_types)[:5])
            self._report.note(UNKNOWN_EVENT, f"{total} unknown event{'s' if total > 1 else ''}, passed over ({kinds})")


def _error_code(result: ResultEvent) -> object:
    return cast("Mapping[str, object]", result.error).get("code") if isinstance(result.error, Mapping) else None


def _follows(row: Row | UsualRow, result: ResultEvent, calls: Mapping[int, str]) -> bool:
    """Tell whether a result says it follows from one of these calls (seq to id), and its own id agrees."""
    return any(source in calls and result.call_id in {None, calls[source]} for source in row.sources)


def _key(event: CallStart | ResultEvent) -> _Key:
    """Return what a result without a source joins by; a nested call's id is its own key."""
    return (None, -1, event.call_id) if event.nested else (event.turn, event.step, event.call_id)


def _fact_key(fact: CallFact) -> _Key:
    return (None, -1, fact.call_id) if fact.nested else (fact.recorded_turn, fact.step, fact.call_id)


def _arguments(start: CallStart) -> tuple[object, str | None]:
    """Return a call's arguments as the tool got them, and their text where they were text."""
    given = start.arguments
    if start.nested or not isinstance(given, str):
        return ({} if given is None else given), None
    return arguments_of(given), given


def arguments_of(text: str) -> object:
    """Return a call's arguments as the tool got them, from their text.

    The empty text is no arguments; text that is not strict JSON reaches the tool as it is.
    """
    if not text:
        return {}
    try:
        return decode_value(text.encode())
    except (BadRowError, UnicodeEncodeError):
        pass
    try:
        return parse_json(text)
    except ValueError:
        return text
