"""Which files changed since a revision, asked of git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from analysis.regress._faults import CheckError, shown

__all__ = ["Changes", "changes_since"]

_PATIENCE = 60
"""Seconds git may take for one answer."""


@dataclass(frozen=True)
class Changes:
    """The state of a working tree against a revision."""

    revision: str
    tracked: frozenset[str]
    """Real paths of the files git knows."""
    changed: frozenset[str]
    """Real paths of those that differ from the revision, deleted ones too."""

    def touches(self, path: Path) -> bool:
        """Tell whether a file may differ: it does, or git does not know it."""
        real = os.path.realpath(path)
        return real in self.changed or real not in self.tracked

    def touches_folder(self, folder: Path) -> bool:
        """Tell whether a file directly in a folder differs, or has gone from it."""
        return os.path.realpath(folder) in self._folders

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(str(Path(path).parent) for path in self.changed)


def changes_since(revision: str, folder: Path) -> Changes:
    """Ask git what changed since a revision, in the repository a folder lies in.

    Raises:
        CheckError: there is no git, no repository, or no such revision.
    """
    place = f"--changed-since {revision}"
    top = _git(["rev-parse", "--show-toplevel"], folder, f"{place}: {shown(folder)} is in no git repository")
    root = Path(os.fsdecode(top.rstrip(b"\n")))
    unknown = f"{place}: no such revision in {root}"
    commit = _git(["rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"], root, unknown)
    sha = commit.decode("ascii").strip()
    names = ["diff", "--name-only", "--no-renames", "--no-ext-diff", "--ignore-submodules", "-z", sha, "--"]
    changed = _git(names, root, f"{place}: git could not compare")
    tracked = _git(["ls-files", "-z"], root, f"{place}: git could not list the files")
    return Changes(revision, _paths(root, tracked), _paths(root, changed))


def _paths(root: Path, names: bytes) -> frozenset[str]:
    real = Path(os.path.realpath(root))
    return frozenset(str(real / os.fsdecode(name)) for name in names.split(b"\0") if name)


def _git(arguments: Sequence[str], folder: Path, fault: str) -> bytes:
    """Run git with fixed arguments, no shell, and no program of the repository's choosing."""
    command = ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        message = f"{fault.partition(':')[0]}: there is no git to ask"
        raise CheckError(message) from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        message = f"{fault}: {error}"
        raise CheckError(message) from None
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        message = f"{fault}: {said[-1]}" if said else fault
        raise CheckError(message)
    return done.stdout
