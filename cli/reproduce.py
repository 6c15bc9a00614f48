"""`breaker reproduce`: an export run again and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.cache_options import CacheOption, cache_opener
from cli.corpus_options import CorpusOptions
from cli.exits import CHECK_FAILED, FINE, USAGE, Failed, warn
from cli.output_options import PrivacyName, load_privacy, output_faults
from cli.settings import load_settings

__all__ = ["reproduce"]


def reproduce(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="The manifest.json of an export.")],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH…", help="Where the sessions are now.", show_default="where the manifest says"),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="The settings of the export.", show_default="those of the manifest"
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One key of the settings of the export; repeatable."),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", metavar="NAME=GLOB", help="A label of the export.", show_default="those of the manifest"
        ),
    ] = None,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="FILE", help="The labels file of the export.")
    ] = None,
    salt_file: Annotated[
        Path | None, typer.Option("--salt-file", metavar="FILE", help="The salt of an export with --privacy hash.")
    ] = None,
    cache: CacheOption = None,
) -> int:
    """Run an export again from its manifest and compare inputs and tables; exit 1 where anything differs.

    Nothing is written beside the manifest. Hashed texts can only be compared with their salt. A manifest whose privacy
    is not `full` does not say where the sessions are, nor which ones were labelled, nor the settings where they name
    single measures or hosts: give PATH, --label or --labels, and --config or --set as for the export.
    """
    from analysis.labels import LabelConflict
    from analysis.sessions.find import PathMissing
    from analysis.tables import ManifestError, read_manifest
    from analysis.tables import reproduce as run_again
    from cli.progress import byte_progress

    if salt_file is not None and not salt_file.exists():
        raise Failed(USAGE, f"{salt_file}: no such file")
    try:
        said = read_manifest(manifest)
        settings = load_settings(config, sets, said.ruleset)[0] if config is not None or sets else None
        rules = CorpusOptions(label=label, labels=labels).label_rules() if label or labels is not None else None
        salt = load_privacy(PrivacyName(said.privacy), salt_file).salt if salt_file is not None else None
        with output_faults(), cache_opener(cache) as open_cache, byte_progress("reading sessions") as progress:
            outcome = run_again(
                said,
                paths=paths,
                settings=settings,
                labels=rules,
                salt=salt,
                progress=progress,
                open_cache=open_cache,
            )
    except (ManifestError, PathMissing, LabelConflict) as error:
        raise Failed(USAGE, str(error)) from None
    for note in outcome.notes:
        warn(note)
    for file in outcome.same:
        print(f"same     {file}")
    for file in outcome.rows_only:
        print(f"rows     {file}: as many rows; its texts are hashed with a salt that is not known here")
    for difference in outcome.differences:
        print(f"differs  {difference.what}: {difference.told}")
    return CHECK_FAILED if outcome.differences else FINE
