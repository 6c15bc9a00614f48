"""An export run again from its manifest, and compared with what the manifest says."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from analysis.cache import Cache
from analysis.corpus import Period, replay_corpus
from analysis.labels import Label, LabelRule, LabelRules
from analysis.progress import NO_PROGRESS, Progress
from analysis.replay import Policy, ReplayPlan, ShellHttpMode
from analysis.sessions.decode import Limits
from analysis.sessions.session_facts import ResultSource
from analysis.tables.collect import TablesObservation
from analysis.tables.export import MANIFEST_NAME, MANIFEST_SCHEMA, FileFormat, export_tables
from analysis.tables.privacy import Privacy, PrivacyMode
from breaker.rulesets import Ruleset, UnknownRulesetError, ruleset_named
from breaker.settings import Settings, SettingsError
from breaker.version import __version__

__all__ = ["Difference", "Manifest", "ManifestError", "Reproduction", "read_manifest", "reproduce"]


class ManifestError(ValueError):
    """A manifest that cannot be read or run again; the message names file and reason."""


class _Tool(msgspec.Struct):
    version: str


class _LabelEntry(msgspec.Struct):
    label: Label
    glob: str | None


class _Input(msgspec.Struct):
    path: str | None
    bytes: int
    sha256: str | None


class _WrittenTable(msgspec.Struct):
    table: str
    file: str
    rows: int
    sha256: str


class Manifest(msgspec.Struct):
    """What a manifest says, as far as running it again needs it."""

    tool: _Tool
    ruleset: str
    policy: Policy
    result_source: ResultSource
    shell_http: ShellHttpMode
    machine: list[str]
    settings: dict[str, object]
    settings_hash: str
    labels: list[_LabelEntry]
    since: float | None
    until: float | None
    max_line: int
    max_expanded: int
    short_line: int
    privacy: PrivacyMode
    salt_sha256: str | None
    format: FileFormat
    roots: list[str]
    inputs: list[_Input]
    tables: list[_WrittenTable]
    schema: Literal["breaker/manifest/1"] = MANIFEST_SCHEMA


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that did not come out as the manifest says."""

    what: str
    told: str


@dataclass(frozen=True, slots=True)
class Reproduction:
    """What came of running an export again."""

    same: tuple[str, ...]
    """Files that came out byte for byte."""
    rows_only: tuple[str, ...]
    """Files with hashed texts whose salt is not known: their rows were counted, their bytes cannot be compared."""
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]


def read_manifest(path: Path) -> Manifest:
    """Read a manifest.

    Raises:
        ManifestError: it cannot be read, or is no manifest of this kind.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Manifest)
    except OSError as error:
        message = f"{path}: cannot read the manifest: {error.strerror or error}"
        raise ManifestError(message) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        message = f"{path}: not a manifest of an export: {error}"
        raise ManifestError(message) from None


def _no_cache(roots: Sequence[Path]) -> None:
    del roots


def reproduce(
    manifest: Manifest,
    *,
    paths: Sequence[Path] | None = None,
    settings: Settings | None = None,
    labels: LabelRules | None = None,
    salt: bytes | None = None,
    progress: Progress = NO_PROGRESS,
    open_cache: Callable[[Sequence[Path]], Cache | None] = _no_cache,
) -> Reproduction:
    """Run an export again into a folder of its own and compare inputs and tables.

    Args:
        manifest: what was run.
        paths: where the corpus is now; where the manifest says, if not given.
        settings: the guard's; those of the manifest, if not given.
        labels: the label rules; those of the manifest, if not given.
        salt: the salt of an export whose texts are hashed.
        progress: told how many bytes were read.
        open_cache: opens the cache for what is read.

    Raises:
        ManifestError: the settings or the ruleset cannot be used, or the export's privacy kept something out of the
            manifest that is not given either.
        PathMissing: the corpus is not there.
        OutputError: there is no room for the tables.
    """
    roots = list(paths or _roots(manifest))
    plan = _plan(manifest, settings)
    if labels is None:
        labels = _labels(manifest)
    limits = Limits(max_line=manifest.max_line, max_expanded=manifest.max_expanded)
    privacy = Privacy(manifest.privacy) if salt is None else Privacy(manifest.privacy, salt)
    bounded = manifest.since is not None or manifest.until is not None
    period = Period(since=manifest.since, until=manifest.until) if bounded else None
    observation = TablesObservation(plan, privacy, [table.table for table in manifest.tables], manifest.short_line)
    try:
        corpus = replay_corpus(
            roots,
            plan,
            labels=labels,
            period=period,
            limits=limits,
            progress=progress,
            observation=observation,
            cache=open_cache(roots),
        )
        with tempfile.TemporaryDirectory(prefix="breaker-") as folder:
            out = Path(folder) / "again"
            export_tables(
                observation,
                corpus,
                out,
                paths=roots,
                labels=labels,
                period=period,
                limits=limits,
                tables=[table.table for table in manifest.tables],
                file_format=manifest.format,
            )
            again = read_manifest(out / MANIFEST_NAME)
    finally:
        observation.close()
    return _compare(manifest, again, comparable=privacy.salt_digest == manifest.salt_sha256)


def _missing(manifest: Manifest, what: str, remedy: str) -> ManifestError:
    return ManifestError(f"the manifest does not hold {what} (privacy {manifest.privacy}): {remedy}")


def _roots(manifest: Manifest) -> list[Path]:
    if manifest.privacy != "full":
        raise _missing(manifest, "where the sessions are", "give their PATHs")
    return [Path(root) for root in manifest.roots]


def _labels(manifest: Manifest) -> LabelRules:
    rules: list[LabelRule] = []
    for entry in manifest.labels:
        if manifest.privacy != "full" or entry.glob is None:
            raise _missing(manifest, "which sessions were labelled", "give the labels by --label or --labels")
        rules.append(LabelRule(entry.label, entry.glob, "", "the manifest"))
    return LabelRules(rules)


def _plan(manifest: Manifest, settings: Settings | None) -> ReplayPlan:
    try:
        ruleset = ruleset_named(manifest.ruleset)
        settings = settings or _settings(manifest, ruleset)
    except (UnknownRulesetError, SettingsError) as error:
        message = f"the manifest cannot be run again: {error}"
        raise ManifestError(message) from None
    return ReplayPlan(
        settings=settings,
        ruleset=ruleset,
        policy=manifest.policy,
        result_source=manifest.result_source,
        shell_http=manifest.shell_http,
        machine=frozenset(manifest.machine),
    )


def _settings(manifest: Manifest, ruleset: Ruleset) -> Settings:
    """Return the manifest's settings, where its privacy left them whole; their hash tells."""
    lost = _missing(manifest, "the settings whole", "give them by --config or --set")
    try:
        settings = Settings.from_config(manifest.settings, ruleset)
    except SettingsError:
        if manifest.privacy != "full":
            raise lost from None
        raise
    if manifest.privacy != "full" and settings.digest != manifest.settings_hash:
        raise lost
    return settings


def _compare(manifest: Manifest, again: Manifest, *, comparable: bool) -> Reproduction:
    differences: list[Difference] = []
    notes: list[str] = []
    if manifest.tool.version != __version__:
        notes.append(f"exported by version {manifest.tool.version}, run again by {__version__}")
    if again.settings_hash != manifest.settings_hash:
        differences.append(Difference("settings", f"{manifest.settings_hash} became {again.settings_hash}"))
    before, after = (sorted((one.sha256 or "", one.bytes) for one in each.inputs) for each in (manifest, again))
    if before != after:
        gone = sum(one not in after for one in before)
        new = sum(one not in before for one in after)
        differences.append(Difference("inputs", f"{gone} of {len(before)} files are gone or changed, {new} are new"))
    same: list[str] = []
    rows_only: list[str] = []
    later = {table.table: table for table in again.tables}
    for table in manifest.tables:
        other = later.get(table.table)
        if other is None:
            differences.append(Difference(table.file, "there is no such table any more"))
        elif other.sha256 == table.sha256:
            same.append(table.file)
        elif other.rows != table.rows:
            differences.append(Difference(table.file, f"{table.rows} rows became {other.rows}"))
        elif comparable:
            differences.append(Difference(table.file, "other bytes, as many rows"))
        else:
            rows_only.append(table.file)
    return Reproduction(tuple(same), tuple(rows_only), tuple(differences), tuple(notes))
