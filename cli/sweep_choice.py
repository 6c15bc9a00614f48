"""What `breaker sweep` does with its choice: requirements and weights in, settings files and pictures out."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from cli.exits import NOT_ENOUGH, USAGE, Failed
from cli.output_options import output_faults, refuse_corpus

if TYPE_CHECKING:
    from analysis.sweep import Choosing, HeldOut, Sweep

__all__ = [
    "PictureName",
    "check_cv",
    "check_plot",
    "check_write",
    "choosing_of",
    "cross_validate",
    "draw",
    "print_patch",
    "require_choice",
    "write_settings",
]


class PictureName(StrEnum):
    """What is drawn."""

    pareto = "pareto"
    heat = "heat"
    response = "response"
    near_miss = "near-miss"


def choosing_of(requirements: Sequence[str], objective: Sequence[str], alpha: float) -> Choosing:
    """Return how to choose.

    Raises:
        Failed: a requirement, a weight or alpha that cannot be used, or two requirements that contradict each other.
    """
    from analysis.sweep import Choosing, SweepError, fewest_good, parse_objective, parse_requirement
    from analysis.sweep import refuse_contradictions as refuse

    try:
        fewest_good(alpha)
        required = tuple(parse_requirement(text) for text in requirements)
        refuse(required)
        return Choosing(required, parse_objective(objective), alpha)
    except SweepError as error:
        raise Failed(USAGE, str(error)) from None
    except ValueError as error:
        raise Failed(USAGE, f"--alpha: {error}") from None


def check_cv(by: str | None) -> None:
    """Refuse a way of holding out that is none."""
    if by is not None and by not in {"project", "model"} and not by.isdecimal():
        raise Failed(USAGE, f"--cv {by}: must be project, model, or a number of folds")


def check_plot(plot: Path | None, pictures: Sequence[PictureName], roots: Sequence[Path]) -> None:
    """Refuse a picture that could not be written, before anything is read."""
    from analysis.report.plots import PLOT_FORMATS

    if plot is None:
        if pictures:
            raise Failed(USAGE, "--picture names what --plot FILE draws, and there is no --plot")
        return
    if plot.suffix.lower().removeprefix(".") not in PLOT_FORMATS:
        raise Failed(USAGE, f"--plot {plot}: must end in .png, .svg or .pdf")
    refuse_corpus(plot, roots)


def check_write(write: Path | None, roots: Sequence[Path]) -> None:
    """Refuse a settings file that could not be written, or that holds more than settings, before anything is read."""
    from analysis.configs import ConfigError
    from analysis.sweep.settings_file import tables_beside

    if write is None:
        return
    if write.suffix.lower() != ".toml":
        raise Failed(USAGE, f"--write {write}: its name must end in .toml")
    refuse_corpus(write, roots)
    try:
        beside = tables_beside(write)
    except ConfigError as error:
        raise Failed(USAGE, f"--write: {error}") from None
    if beside:
        told = ", ".join(f"[{name}]" for name in beside)
        raise Failed(USAGE, f"--write {write}: holds {told} too, which would be lost; write another file")


def require_choice(result: Sweep, wanted: Sequence[str]) -> int:
    """Return the configuration that is recommended.

    Raises:
        Failed: there is none; the options that wanted one are named, with what is missing.
    """
    front = result.front
    if front.recommended is None:
        told = "" if front.why.startswith("--") else f"{', '.join(wanted)}: "
        leads = "" if front.leading is None else f"; {result.plan.configs[front.leading].told} leads so far"
        raise Failed(NOT_ENOUGH, f"{told}nothing is recommended: {front.why}{leads}")
    return front.recommended


def cross_validate(result: Sweep, by: str | None, seed: int) -> HeldOut | None:
    """Return the cross-validation that was asked for."""
    from analysis.sweep import SweepError, hold_out

    if by is None:
        return None
    try:
        return hold_out(result, by, seed=seed)
    except SweepError as error:
        raise Failed(NOT_ENOUGH, str(error)) from None


def write_settings(result: Sweep, chosen: int, path: Path, *, force: bool) -> None:
    """Write the chosen settings as a `breaker.toml`."""
    from analysis.files import atomic_file
    from analysis.sweep.settings_file import UnwritableError, settings_toml

    try:
        text = settings_toml(result.plan.configs[chosen], result.front.why)
    except UnwritableError as error:
        raise Failed(USAGE, f"--write {path}: {error}") from None
    with output_faults(), atomic_file(path, force=force) as file:
        file.write(text.encode())


def print_patch(result: Sweep, chosen: int) -> None:
    """Print the chosen settings as the guard's row of a `cordis.patch.yml`."""
    from analysis.sweep.settings_file import UnwritableError, patch_text

    try:
        print(patch_text(result.plan.configs[chosen], result.front.why), end="")
    except UnwritableError as error:
        raise Failed(USAGE, f"--patch: {error}") from None


def draw(result: Sweep, plot: Path, pictures: Sequence[PictureName], *, metric: str | None, force: bool) -> None:
    """Draw the pictures that were named, or all that can be drawn."""
    from analysis.files import atomic_file
    from analysis.report.plots import PLOT_FORMATS, PlotFormat, write_figure
    from analysis.sweep import SweepError
    from analysis.sweep.pictures import PICTURES, Picture, sweep_figure

    known: dict[str, Picture] = {name: name for name in PICTURES}
    formats: dict[str, PlotFormat] = {name: name for name in PLOT_FORMATS}
    try:
        figure = sweep_figure(result, [known[name.value] for name in pictures], metric=metric)
    except SweepError as error:
        raise Failed(NOT_ENOUGH, f"--plot {plot}: {error}") from None
    with output_faults(), atomic_file(plot, force=force) as file:
        write_figure(figure, file, formats[plot.suffix.lower().removeprefix(".")])
