"""The names that mean this machine: known before the policy is, and without its rules."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["LOOPBACK", "this_machine"]

LOOPBACK = frozenset({"localhost", "ip6-localhost", "ip6-loopback", "localhost.localdomain", "::1", "0.0.0.0", "::"})
"""The names and addresses every machine calls itself; the whole of 127.* comes on top, unasked."""

_IPV4 = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}\Z"


def this_machine(names: Iterable[str]) -> frozenset[str]:
    """Return the loopback names with a machine's own: each as given and, for host names, its first label.

    Args:
        names: host names and interface addresses, from whoever knows them; nothing is read from the system.
    """
    own = set(LOOPBACK)
    for name in names:
        lowered = name.strip("[]").lower()
        own.add(lowered)
        if ":" not in lowered and not re.match(_IPV4, lowered):
            own.add(lowered.partition(".")[0])
    return frozenset(own - {""})
