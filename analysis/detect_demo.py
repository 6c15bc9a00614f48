"""What each detector sees in the demo corpus, where every session is planted: what it catches and what it misses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypedDict

from analysis.corpus import CorpusReplay, replay_corpus
from analysis.detect import BREAKER_NAME, DetectorSpec, happened, parse_detectors, plain_settings
from analysis.documents import JsonObject, run_head, tool_head
from analysis.labels import Label
from analysis.replay import ReplayPlan
from analysis.synth import write_corpus
from breaker.detectors import DetectorKind

__all__ = [
    "DEMO_DETECTORS",
    "DemoRow",
    "DetectorsOnDemo",
    "FirstFinding",
    "ListedDetector",
    "demo_document",
    "detector_list",
    "detectors_document",
    "see_demo",
]

DEMO_DETECTORS = (
    "fail-guard",
    "reminder",
    "repeat-stop",
    "consecutive",
    "doom-loop:scope=step",
    "doom-loop:scope=turn",
    "openhands",
    "step-cap:preset=smolagents",
    "failure-streak:by=call",
    "failure-streak:by=tool",
)
"""Every built-in rule, and the variants of those that come in several."""


class ListedDetector(TypedDict):
    """A detector in a list."""

    name: str
    rule: str
    stages: list[str]
    settings: dict[str, object] | None
    origin: str


def detectors_document(kinds: Sequence[DetectorKind]) -> JsonObject:
    """Return the list of detectors as a JSON-ready document."""
    return {**tool_head("detectors"), "detectors": detector_list(kinds)}


def detector_list(kinds: Sequence[DetectorKind]) -> list[ListedDetector]:
    """Return what there is to say of each detector; settings are None where only the detector itself knows them."""
    return [
        ListedDetector(
            name=kind.name,
            rule=kind.rule,
            stages=list(kind.stages),
            settings=None if kind.defaults is None else plain_settings(kind.defaults),
            origin=kind.origin,
        )
        for kind in kinds
    ]


@dataclass(frozen=True, slots=True)
class FirstFinding:
    """The first event of a detector in a session."""

    stage: str
    call: int


@dataclass(frozen=True, slots=True)
class DemoRow:
    """One planted session, and the first finding of each detector."""

    name: str
    summary: str
    label: Label
    firsts: tuple[FirstFinding | None, ...]


@dataclass(frozen=True, slots=True)
class DetectorsOnDemo:
    """The demo corpus as the breaker and other detectors see it."""

    labels: tuple[str, ...]
    rows: tuple[DemoRow, ...]
    corpus: CorpusReplay

    @property
    def sessions(self) -> tuple[int, ...]:
        """In how many sessions each fires."""
        return tuple(sum(row.firsts[at] is not None for row in self.rows) for at in range(len(self.labels)))


def see_demo(folder: Path, specs: Sequence[DetectorSpec] | None = None) -> DetectorsOnDemo:
    """Write the demo corpus into an empty folder and run the breaker and the detectors over it."""
    chosen = tuple(specs) if specs is not None else _every_variant()
    truth = write_corpus(folder, "demo")
    corpus = replay_corpus([folder], replace(ReplayPlan(keep_events=True), detectors=chosen))
    labels = (BREAKER_NAME, *(spec.label for spec in chosen))
    by_id = {row.session_id: row for row in corpus.sessions}
    rows: list[DemoRow] = []
    for session in truth.sessions:
        firsts: dict[str, FirstFinding] = {}
        for name, event in happened(by_id[session.id].replay):
            firsts.setdefault(name, FirstFinding(event.stage, event.call))
        rows.append(DemoRow(session.name, session.summary, session.label, tuple(map(firsts.get, labels))))
    return DetectorsOnDemo(labels, tuple(rows), corpus)


def _every_variant() -> tuple[DetectorSpec, ...]:
    """Return the built-in rules, each called by all of its text: a number without its settings says little."""
    specs = parse_detectors(DEMO_DETECTORS)
    return tuple(replace(spec, label=text) for spec, text in zip(specs, DEMO_DETECTORS, strict=True))


def demo_document(seen: DetectorsOnDemo) -> JsonObject:
    """Return the planted sessions with what each detector first says as a JSON-ready document."""
    fires = dict(zip(seen.labels, seen.sessions, strict=True))
    return {**run_head("detectors-demo", seen.corpus.plan), "sessions": _demo_rows(seen), "fires_in": fires}


def _demo_rows(seen: DetectorsOnDemo) -> list[JsonObject]:
    return [
        {
            "session": row.name,
            "summary": row.summary,
            "label": row.label,
            "detectors": {
                label: None if first is None else {"stage": first.stage, "call": first.call}
                for label, first in zip(seen.labels, row.firsts, strict=True)
            },
        }
        for row in seen.rows
    ]
