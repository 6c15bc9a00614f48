"""What of a log's text may be written: all of it, its shape, salted hashes, or nothing but counts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from secrets import token_bytes
from typing import TYPE_CHECKING, Literal, cast

from breaker.kinds import KINDS, kind_of
from breaker.settings import Settings

if TYPE_CHECKING:
    from analysis.tables.schemas import TextKind
    from breaker.rulesets import Ruleset

__all__ = [
    "DEFAULT_PRIVACY",
    "PRIVACIES",
    "SALT_BYTES",
    "Privacy",
    "PrivacyMode",
    "printable_unicode",
    "private_settings",
]

PrivacyMode = Literal["full", "shape", "hash", "counts"]
PRIVACIES: tuple[PrivacyMode, ...] = ("full", "shape", "hash", "counts")
DEFAULT_PRIVACY: PrivacyMode = "shape"
"""What is written where nothing else was asked for."""

SALT_BYTES = 32
_HASH_BYTES = 8
_PLAIN_WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:+-]{0,63}")
_PLAIN_VERB = re.compile(r"[A-Za-z0-9_.+-]{1,32}")
_PLAIN_HOST = re.compile(r"[a-z0-9_.:-]{1,253}")
_HOST_KINDS = frozenset({"host", "site"})


def printable_unicode(text: str) -> str:
    r"""Return text that is valid Unicode: a lone surrogate, which no file can hold, is written out (`\ud800`)."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="backslashreplace").decode()
    return text


def _length(text: str) -> str:
    return f"#{len(text)}"


def _plain_or_length(text: str, plain: re.Pattern[str] = _PLAIN_WORD) -> str:
    return text if not text or plain.fullmatch(text) else _length(text)


def _measure_shape(measure: str) -> str:
    """Keep a measure's kind, and its host, verb, family or tool; of the rest its length."""
    kind, _, value = measure.partition(":")
    if kind in _HOST_KINDS:
        return f"{kind}:{_plain_or_length(value, _PLAIN_HOST)}"
    if kind in {"verb", "family"}:
        return f"{kind}:{_plain_or_length(value, _PLAIN_VERB)}"
    if kind == "net":
        host = re.split(r"[/?]", value, maxsplit=1)[0]
        kept = host if _PLAIN_HOST.fullmatch(host) else ""
    elif kind in {"cmd", "exact"}:
        word = value.partition(":")[0]
        kept = word if _PLAIN_VERB.fullmatch(word) else ""
    else:
        kept = ""
    return f"{kind}:{kept}{_length(value)}"


def _path_shape(path: str) -> str:
    return "/".join(_length(part) if part else "" for part in path.replace("\\", "/").split("/"))


@dataclass(frozen=True)
class Privacy:
    """Decides what is written of a text. Measures, commands and paths can hold secrets.

    Args:
        mode: `full`; `shape` (kinds, hosts, verbs, plain names and lengths); `hash` (salted); `counts` (no text).
        salt: what hashes are salted with; a new one for every run where none is given, kept nowhere.
    """

    mode: PrivacyMode = DEFAULT_PRIVACY
    salt: bytes = field(default_factory=lambda: token_bytes(SALT_BYTES), repr=False)

    @property
    def salt_digest(self) -> str | None:
        """The hash of the salt, by which a given one can be told to be the same; None where nothing is hashed."""
        return sha256(self.salt).hexdigest() if self.mode == "hash" else None

    def shown(self, text: str | None, kind: TextKind) -> str | None:
        """Return what may be written of a text of that kind; None where nothing may, or for None."""
        if text is None:
            return None
        if kind == "fixed" or self.mode == "full":
            return printable_unicode(text)
        if self.mode == "counts":
            return None
        if self.mode == "hash":
            return self._hashed(text, kind)
        if kind == "measure":
            return printable_unicode(_measure_shape(text))
        if kind == "path":
            return _path_shape(text)
        if kind == "text":
            return _length(text)
        return _plain_or_length(text)

    def shown_all(self, texts: tuple[str, ...] | list[str], kind: TextKind) -> list[str]:
        """Return what may be written of each text; nothing where nothing may."""
        shown = (self.shown(text, kind) for text in texts)
        return [text for text in shown if text is not None]

    def _hashed(self, text: str, kind: TextKind) -> str:
        if kind == "name" and (not text or _PLAIN_WORD.fullmatch(text)):
            return text
        digest = blake2b(text.encode(errors="surrogatepass"), digest_size=_HASH_BYTES, key=self.salt).hexdigest()
        return f"{printable_unicode(kind_of(text))}:{digest}" if kind == "measure" else digest


# -- settings ------------------------------------------------------------------------------------------------------

_WITHHELD = "#"
"""Stands where a text was and none may be."""


def private_settings(settings: Settings, ruleset: Ruleset, privacy: Privacy) -> dict[str, object]:
    """Return the effective settings as they may be written, JSON-ready.

    Numbers, switches, choices and whatever is a default stay. What the user wrote is shown as far as the privacy
    allows: limits of a single measure as measures, host aliases as texts, tools and arguments as names. Entries that
    come out alike are numbered, so that none is lost.
    """
    config = settings.as_config
    if privacy.mode == "full":
        return config
    defaults = Settings.from_config({}, ruleset).as_config
    return {
        key: value if key in _CHOICES else _private_value(key, value, defaults.get(key), privacy)
        for key, value in config.items()
    }


_CHOICES = frozenset({"localHosts", "onLimit"})
"""Settings whose text is one of a few fixed words."""


def _private_value(key: str, value: object, default: object, privacy: Privacy) -> object:
    """Return what may be written of one value; `key` is the setting it stands under, at whatever depth."""
    if value is None or isinstance(value, bool | int | float) or value == default:
        return value
    if isinstance(value, str):
        return privacy.shown(value, "text" if key == "hostAliases" else "name") or _WITHHELD
    if isinstance(value, Mapping):
        return _private_map(key, cast("Mapping[str, object]", value), default, privacy)
    known = cast("Sequence[object]", default) if isinstance(default, list) else ()
    items = cast("Sequence[object]", value)
    return [item if item in known else _private_value(key, item, None, privacy) for item in items]


def _private_map(key: str, entries: Mapping[str, object], default: object, privacy: Privacy) -> dict[str, object]:
    known = cast("Mapping[str, object]", default if isinstance(default, Mapping) else {})
    shown: dict[str, object] = {}
    alike: Counter[str] = Counter()
    for entry, value in entries.items():
        name = entry
        if entry not in known and not (key == "limits" and entry in KINDS):
            name = privacy.shown(entry, _entry_kind(key, entry)) or _WITHHELD
            alike[name] += 1
            name = name if alike[name] == 1 else f"{name}~{alike[name]}"
        shown[name] = _private_value(key, value, known.get(entry), privacy)
    return shown


def _entry_kind(key: str, entry: str) -> TextKind:
    if key == "limits":
        return "measure" if kind_of(entry) in KINDS else "text"
    return "text" if key == "hostAliases" else "name"
