"""`breaker doctor`: what is wrong with recorded sessions, where, and what it means."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from cli.corpus_options import CorpusOptions, corpus_command, judge, require_sessions
from cli.exits import CHECK_FAILED, USAGE, Failed, warn

if TYPE_CHECKING:
    from analysis.doctor import Checkup, FileCheckup, Finding

__all__ = ["DoctorFormat", "doctor"]


class DoctorFormat(StrEnum):
    """How the checkup is printed."""

    text = "text"
    json = "json"


@partial(
    corpus_command, without=("policy", "shell_http", "machine", "config", "sets", "label", "labels", "jobs", "cache")
)
def doctor(
    options: CorpusOptions,
    output: Annotated[DoctorFormat, typer.Option("--format", help="Text, or one JSON document.")] = DoctorFormat.text,
) -> int:
    """Tell what is wrong with recorded sessions: each defect with its place and what it means for the numbers.

    Every oddity is told with its place. No log is ever changed. Exit 1 where something is wrong; older
    generations, copies, forks, resumed sessions and events of plugins are normal, and told.
    """
    from analysis.doctor import check_up
    from analysis.labels import LabelConflict
    from analysis.sessions.find import PathMissing
    from cli.progress import byte_progress

    plan, period, limits = options.plan(), options.period(), options.limits()
    with byte_progress("reading sessions") as progress:
        try:
            checkup = check_up(options.roots, plan, period=period, limits=limits, progress=progress)
        except (PathMissing, LabelConflict) as error:
            raise Failed(USAGE, str(error)) from None
    for message in checkup.corpus.warnings:
        warn(message)
    require_sessions(checkup.corpus)
    _print(checkup, output)
    code = judge(checkup.corpus, strict=options.strict)
    return code or (CHECK_FAILED if checkup.defective else code)


def _print(checkup: Checkup, output: DoctorFormat) -> None:
    if output is DoctorFormat.json:
        from analysis.doctor import doctor_document
        from cli.jsonlines import print_json

        print_json(doctor_document(checkup))
    else:
        _print_text(checkup)


def _print_text(checkup: Checkup) -> None:
    from cli.text import counted, plain

    corpus = checkup.corpus
    for file in checkup.files:
        if file.findings:
            _print_file(file)
    for finding in checkup.not_searched:
        print(f"{plain(finding.path)}: not searched")
        print(f"  {finding.severity}: {plain(finding.message)} ({finding.kind})")
    forks = checkup.forks
    resumed = [file for file in checkup.files if file.resumes]
    counts = " · ".join(f"{state} {count}" for state, count in corpus.read_counts.items() if count)
    found = f"{counted(len(corpus.reports), 'file')}, {counted(len(corpus.sessions), 'session')}"
    print(f"{found}: {counts or 'none'}")
    print(
        f"older generations {sum(map(len, checkup.generations.values()))} · "
        f"copies {sum(map(len, checkup.duplicates.values()))} · "
        f"forks {len(forks)}, {sum(not fork.parent_here for fork in forks)} of them without their parent · "
        f"resumed {counted(sum(file.resumes for file in resumed), 'time')} in {counted(len(resumed), 'session')}"
    )
    defects = [finding for finding in checkup.findings if finding.severity == "defect"]
    lost = sum(file.report.lost_bytes for file in checkup.files)
    wrong = f"{counted(len(defects), 'defect')}, {counted(lost, 'byte')} lost"
    print(wrong if defects else "nothing is wrong")
    for kind, meaning in {finding.kind: finding.meaning for finding in checkup.findings if finding.meaning}.items():
        print(f"  {kind}: {meaning}")


def _print_file(file: FileCheckup) -> None:
    from cli.text import counted, plain

    report = file.report
    print(f"{plain(report.shown)}: {report.state}")
    for finding in file.findings:
        lost = f"; {counted(finding.lost_bytes, 'byte')} lost" if finding.lost_bytes else ""
        print(f"  {finding.severity}{_place(finding)}: {plain(finding.message)}{lost} ({finding.kind})")
    if file.untold:
        print(f"  … and {file.untold} more")


def _place(finding: Finding) -> str:
    parts = [
        f"{name} {value}"
        for name, value in (("line", finding.line), ("frame", finding.frame), ("seq", finding.seq))
        if value is not None
    ]
    if finding.byte is not None:
        parts.append(f"byte {finding.byte}" + (" of the text" if finding.byte_of == "text" else ""))
    return f" at {', '.join(parts)}" if parts else ""
