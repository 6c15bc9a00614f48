"""URLs as the guard compares them: found in a command, normalised, split into site and host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

import ada_url

from breaker.ecmascript import LINE_TERMINATORS, WHITESPACE, replace_lone_surrogates, sort_by_units, trim
from breaker.rulesets import Ruleset

__all__ = ["Address", "extract_urls", "is_local_host", "normalise_url"]

_FOUND = re.compile(rf"https?://[^{re.escape(WHITESPACE)}\"'\\<>`]+")
_ESCAPED_PUNCTUATION = re.compile(r"\\([.:/?&=#%~-])")
_TRAILING: Final = ".,;:!?)]}'\""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[/\\]*([^/\\?#]*)")
_LONGEST_NAME = 4096
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_AUTHORITY = re.compile(rf"([A-Za-z][A-Za-z0-9+.-]*://)([^/?#]*+)([^{LINE_TERMINATORS}]*+)\Z")
_DIGITS = re.compile(r"[0-9]+\Z")
_IPV4 = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}\Z")
_TRACKING = re.compile(r"(?:utm_\w+|fbclid|gclid|msclkid|mc_eid|_ga|ref_src|igshid)\Z", re.IGNORECASE | re.ASCII)
_LOCAL_NAMES = frozenset({"localhost", "::1", "0:0:0:0:0:0:0:1", "0.0.0.0"})
_LOCAL_PREFIX = re.compile(
    r"127\.|10\.|192\.168\.|172\.(?:1[6-9]|2[0-9]|3[01])\.|169\.254\.|f[cd][0-9a-f]{2}:|fe80:",
    re.IGNORECASE | re.ASCII,
)


class Address(NamedTuple):
    """One normalised URL: scheme, user info, port and fragment never take part."""

    href: str
    """Host, path and the sorted, decoded query without tracking parameters."""
    site: str
    """The last two labels of the host (no public-suffix list); an IP address is its own site."""
    host: str

    @property
    def is_local(self) -> bool:
        """Tell whether the host is this machine or a private network, by its text."""
        return is_local_host(self.host)


def extract_urls(command: str, ruleset: Ruleset) -> list[str]:
    """Find the URL texts of a command, each once, in order; trailing punctuation is cut off."""
    if "http" not in command:
        return []
    text = _ESCAPED_PUNCTUATION.sub(r"\1", command) if ruleset.unescape_urls else command
    return list(dict.fromkeys(found.rstrip(_TRAILING) for found in _FOUND.findall(text)))


def _without_bad_port(text: str) -> str:
    parts = _AUTHORITY.match(text)
    if parts is None:
        return text
    scheme, authority, rest = parts.groups()
    user, at, host = authority.rpartition("@")
    colon = host.find(":", max(host.find("]"), 0)) if host.startswith("[") else host.rfind(":")
    if colon < 0:
        return text
    port = host[colon + 1 :]
    if not port or _DIGITS.match(port):
        return text
    return f"{scheme}{user}{at}{host[:colon]}{rest}"


def _normal_query(search: str) -> str:
    return "&".join(
        sort_by_units(f"{name}={value}" for name, value in _query_pairs(search[1:]) if not _TRACKING.match(name))
    )


def _query_pairs(query: str) -> list[tuple[str, str]]:
    """Split a query into names and values, decoded; empty pairs are left out."""
    if "%" in query or "+" in query:
        from urllib.parse import parse_qsl  # here, since few addresses need it, and it is slow to load

        return parse_qsl(query, keep_blank_values=True, errors="replace")
    split = (pair.partition("=") for pair in query.split("&") if pair)
    return [(name, value) for name, _, value in split]


def _site(host: str) -> str:
    if _IPV4.match(host) or ":" in host:
        return host
    labels = [label for label in host.split(".") if label]
    return host if len(labels) <= 2 else ".".join(labels[-2:])


def _is_endless_name(text: str) -> bool:
    """Tell whether a host is too long a text of other alphabets: the parser's time grows with its square."""
    if len(text) <= _LONGEST_NAME or text.isascii():
        return False
    name = _NAME.match(text)
    return name is not None and len(name[1]) > _LONGEST_NAME and not name[1].isascii()


def normalise_url(raw: str, host_aliases: Mapping[str, object], ruleset: Ruleset) -> Address | None:
    """Normalise one URL text; None where the WHATWG parser of Node 20 refuses it or no host is left.

    A text without a scheme is taken as https. Host names lose one trailing dot and one leading `www.`; an alias
    replaces the whole host and is not normalised again. Other than in Node, a host of more than 4,096 characters that
    are not all ASCII is none: it would take the parser seconds, and no name is that long.
    """
    text = replace_lone_surrogates(trim(raw))
    if not text:
        return None
    if not _SCHEME.match(text):
        text = f"https://{text}"
    if ruleset.drop_bad_ports:
        text = _without_bad_port(text)
    if _is_endless_name(text):
        return None
    try:
        url = ada_url.URL(text)
    except ValueError:
        return None
    host = url.hostname.lower()
    if ruleset.unescape_urls and host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    host = host.removesuffix(".").removeprefix("www.")
    if not host:
        return None
    alias = host_aliases.get(host)
    if isinstance(alias, str) and alias:
        host = alias.lower()
    path = url.pathname or "/"
    if len(path) > 1:
        path = path.rstrip("/") or "/"
    search = url.search
    query = _normal_query(search) if len(search) > 1 else ""
    return Address(href=f"{host}{path}?{query}" if query else f"{host}{path}", site=_site(host), host=host)


def is_local_host(host: str) -> bool:
    """Tell whether a host is local by its text alone: loopback names and the private prefixes."""
    return host in _LOCAL_NAMES or host.endswith(".localhost") or _LOCAL_PREFIX.match(host) is not None
