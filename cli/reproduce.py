"""`breaker reproduce`: an export run again and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.exits import CHECK_FAILED, FINE, USAGE, Failed, warn
from cli.output_options import PrivacyName, SaltFileOption, load_privacy, output_faults

__all__ = ["reproduce"]


def reproduce(
    manifest: Annotated[Path, typer.Argument(metavar="MANIFEST", help="The manifest.json of an export.")],
    paths: Annotated[
        list[Path] | None,
        typer.Argument(metavar="PATH…", help="Where the sessions are now.", show_default="where the manifest says"),
    ] = None,
    salt_file: SaltFileOption = None,
) -> int:
    """Run an export again from its manifest and compare inputs and tables; exit 1 where anything differs.

    Nothing is written beside the manifest. Hashed texts can only be compared with their salt.
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
        salt = load_privacy(PrivacyName(said.privacy), salt_file).salt if salt_file is not None else None
        with output_faults(), byte_progress("reading sessions") as progress:
            outcome = run_again(said, paths=paths, salt=salt, progress=progress)
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
