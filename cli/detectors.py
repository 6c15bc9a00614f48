"""Detectors on the command line: how they are given, what is said of one that fails, and the verb that lists them."""

from __future__ import annotations

from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import FINE, UNREADABLE, USAGE, Failed, warn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.corpus import CorpusReplay
    from analysis.detect import DetectorSpec
    from breaker.detectors import DetectorKind

__all__ = [
    "DetectorConfigOption",
    "DetectorOption",
    "ListFormat",
    "detector_configs",
    "detector_specs",
    "detectors",
    "rebuilt_told",
    "tell_faults",
]

DetectorOption = Annotated[
    list[str] | None,
    typer.Option(
        "--detector",
        metavar="NAME[:key=value,…]",
        help="Run another rule beside the guard; repeatable. `breaker detectors` lists them.",
    ),
]
DetectorConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--detector-config",
        metavar="FILE",
        help="Settings of detectors: TOML, JSON or YAML with a table for each, or a cordis.patch.yml with the rows of "
        "their plugins.",
    ),
]

_MOST_FAULTS = 5
_NONE = "·"


class ListFormat(StrEnum):
    """How detectors are listed."""

    table = "table"
    json = "json"
    markdown = "markdown"


def detector_configs(path: Path | None) -> Mapping[str, Mapping[str, object]]:
    """Read the settings of detectors out of a file.

    Raises:
        Failed: the file is wrong, or speaks of a detector nobody knows.
    """
    if path is None:
        return {}
    from analysis.configs import ConfigError
    from analysis.detect import DetectorError, known_detectors, read_detector_config

    try:
        configs = read_detector_config(path)
        known = known_detectors()
    except (ConfigError, DetectorError) as error:
        raise Failed(USAGE, str(error)) from None
    for name in configs:
        if name not in known:
            raise Failed(USAGE, f"{path}: unknown detector {name!r}; known: {', '.join(known)}")
    return configs


def detector_specs(
    texts: Sequence[str] | None, configs: Mapping[str, Mapping[str, object]]
) -> tuple[DetectorSpec, ...]:
    """Read the detectors given, or where none is those that a file has settings for.

    Raises:
        Failed: one is not known, or refuses a setting.
    """
    if not texts and not configs:
        return ()
    from analysis.detect import DetectorError, parse_detectors

    try:
        return parse_detectors(texts or list(configs), configs)
    except DetectorError as error:
        raise Failed(USAGE, str(error)) from None


def tell_faults(corpus: CorpusReplay) -> int:
    """Tell of the detectors that raised, the first few by name, and return the exit code that leaves."""
    if not corpus.plan.detectors:
        return FINE
    from analysis.detect_document import detector_faults
    from cli.text import counted

    faults = detector_faults(corpus)
    for row, fault in faults[:_MOST_FAULTS]:
        place = f"call {fault.call} (seq {fault.seq})" if fault.call >= 0 else "before its first call"
        told = f"detector {fault.label}: session {row.session_id}, {place}: {fault.message}"
        warn(f"{told}; the session went on without it")
    if len(faults) > _MOST_FAULTS:
        warn(f"detectors gave up in {counted(len(faults) - _MOST_FAULTS, 'more session')}")
    return UNREADABLE if faults else FINE


def rebuilt_told(corpus: CorpusReplay) -> list[str]:
    """Return a line for each detector that reads exit codes: how much of what it says rests on rebuilt ones."""
    from analysis.detect import sum_detectors
    from cli.text import counted

    totals = sum_detectors(corpus.plan.detectors, (row.replay for row in corpus.sessions))
    return [
        f"{label}: {total.rebuilt_failures} of {total.failures} failed results rest on an exit code rebuilt from the "
        f"output, and {total.on_rebuilt} of its {counted(total.stages.total(), 'event')}"
        for label, total in totals.items()
        if total.failures
    ]


def detectors(
    demo: Annotated[
        bool, typer.Option("--demo", help="Show which of them fire in each session of the demo corpus, and where.")
    ] = False,
    detector: DetectorOption = None,
    detector_config: DetectorConfigOption = None,
    output: Annotated[ListFormat, typer.Option("--format", help="A table, JSON, or Markdown.")] = ListFormat.table,
) -> int:
    """List the rules the guard can be compared with, or show what each of them sees in the demo corpus.

    With --demo and no --detector, the breaker and every built-in rule as shipped are shown, and the variants of those
    that come in several.
    """
    from analysis.detect import DetectorError, known_detectors

    configs = detector_configs(detector_config)
    if demo:
        return _show_demo(detector_specs(detector, configs) or None, output)
    if detector or configs:
        raise Failed(USAGE, f"{'--detector' if detector else '--detector-config'} goes with --demo here")
    try:
        known = known_detectors()
    except DetectorError as error:
        raise Failed(USAGE, str(error)) from None
    _list(list(known.values()), output)
    return FINE


def _list(kinds: Sequence[DetectorKind], output: ListFormat) -> None:
    from analysis.detect_demo import detector_list, detectors_document
    from cli.jsonlines import print_json
    from cli.tables import print_markdown, print_rows

    if output is ListFormat.json:
        print_json(detectors_document(kinds))
        return
    rows = detector_list(kinds)
    headings = ("detector", "what it looks for", "says", "settings", "from")
    cells = [
        (
            row["name"],
            row["rule"],
            ", ".join(row["stages"]),
            ", ".join(row["settings"] or []) or "its own",
            row["origin"],
        )
        for row in rows
    ]
    if output is ListFormat.markdown:
        print_markdown(headings, cells)
    else:
        print_rows(headings, cells)


def _show_demo(specs: Sequence[DetectorSpec] | None, output: ListFormat) -> int:
    import tempfile

    from analysis.detect_demo import demo_document, see_demo
    from cli.jsonlines import print_json
    from cli.tables import print_markdown, print_rows

    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="breaker-demo-")))
        seen = see_demo(folder, specs)
    if output is ListFormat.json:
        print_json(demo_document(seen))
    elif output is ListFormat.markdown:
        rows = [
            (row.name, row.label, *(f"{first.stage} #{first.call}" if first else _NONE for first in row.firsts))
            for row in seen.rows
        ]
        print_markdown(("session", "label", *seen.labels), [*rows, ("fires in", "", *map(str, seen.sessions))])
    else:
        numbers = [str(number) for number in range(1, len(seen.labels) + 1)]
        rows = [
            (row.name, row.label, *(f"#{first.call}" if first else _NONE for first in row.firsts)) for row in seen.rows
        ]
        table = [*rows, ("fires in", "", *map(str, seen.sessions))]
        print_rows(("session", "label", *numbers), table, numbers_from=2, cut=(0,), first_out=[("label",)])
        print("The first call each of them speaks of:")
        for number, label in zip(numbers, seen.labels, strict=True):
            print(f"  {number:>2}  {label}")
    return tell_faults(seen.corpus)
