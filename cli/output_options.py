"""What commands that write files take: privacy, salt, and whether what stands there may be replaced."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.exits import USAGE, Failed

if TYPE_CHECKING:
    from analysis.tables import Privacy

__all__ = [
    "DEFAULT_SHORT_LINE",
    "AllowEmptyOption",
    "ForceOption",
    "PrivacyName",
    "PrivacyOption",
    "SaltFileOption",
    "ShortLineOption",
    "load_privacy",
    "output_faults",
    "refuse_corpus",
]

DEFAULT_SHORT_LINE = 40


class PrivacyName(StrEnum):
    """What of a log's text is written."""

    full = "full"
    shape = "shape"
    hash = "hash"
    counts = "counts"


PrivacyOption = Annotated[
    PrivacyName,
    typer.Option(
        "--privacy",
        help="Texts from logs: all of them (full); kinds, hosts, verbs, plain names and lengths (shape); salted "
        "hashes (hash); none (counts).",
    ),
]
SaltFileOption = Annotated[
    Path | None,
    typer.Option(
        "--salt-file",
        metavar="FILE",
        help="Salt of the hashes, made where the file does not exist; otherwise each run has a new salt, kept nowhere.",
    ),
]
ForceOption = Annotated[bool, typer.Option("--force", help="Replace what stands there already.")]
AllowEmptyOption = Annotated[
    bool, typer.Option("--allow-empty", help="Do not exit 4 where there are no sessions or no calls.")
]
ShortLineOption = Annotated[
    int,
    typer.Option(
        "--short-line", min=0, metavar="CHARACTERS", help="Lines of the model's text up to this are short phrases."
    ),
]


def load_privacy(mode: PrivacyName, salt_file: Path | None) -> Privacy:
    """Return the privacy asked for, with the salt of the file where one is given.

    Raises:
        Failed: a salt where nothing is hashed, or a file that cannot be used.
    """
    from analysis.tables import Privacy

    if salt_file is None:
        return Privacy(mode.value)
    if mode is not PrivacyName.hash:
        raise Failed(USAGE, "--salt-file belongs to --privacy hash")
    return Privacy(mode.value, _salt(salt_file))


def _salt(path: Path) -> bytes:
    from secrets import token_bytes
    from tempfile import NamedTemporaryFile

    from analysis.tables import SALT_BYTES

    try:
        if path.exists():
            salt = bytes.fromhex(path.read_text(encoding="ascii").strip())
            if len(salt) != SALT_BYTES:
                raise Failed(USAGE, f"{path}: a salt has {SALT_BYTES} bytes, this one {len(salt)}")
            return salt
        salt = token_bytes(SALT_BYTES)
        # Named only once it is whole: half a salt would be refused ever after.
        with NamedTemporaryFile("w", dir=path.parent, prefix=f".{path.name}.", encoding="ascii", delete=False) as file:
            file.write(salt.hex() + "\n")
        Path(file.name).replace(path)
    except ValueError:
        raise Failed(USAGE, f"{path}: not a salt ({SALT_BYTES} bytes as hexadecimal digits)") from None
    except OSError as error:
        raise Failed(USAGE, f"{path}: cannot keep the salt: {error.strerror}") from None
    return salt


def refuse_corpus(out: Path, corpus: Iterable[Path]) -> None:
    """Refuse to write inside recorded sessions.

    Raises:
        Failed: `out` lies in them.
    """
    from analysis.files import refuse_inside

    with output_faults():
        refuse_inside(out, corpus)


@contextmanager
def output_faults(out: Path | None = None) -> Generator[None]:
    """Turn what cannot be written into a fault of usage.

    Args:
        out: what is written, where nothing but that touches the disk; then any fault of the disk is meant.
    """
    from analysis.files import OutputError

    try:
        yield
    except OutputError as error:
        raise Failed(USAGE, str(error)) from None
    except OSError as error:
        if out is None:
            raise
        raise Failed(USAGE, f"{error.filename or out}: cannot write: {error.strerror or error}") from None
