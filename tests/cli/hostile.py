"""Sessions in which every text, and every name of a folder, tries to act on whatever shows it."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

from tests.analysis.logs import LogWriter

__all__ = ["ACTS", "NAME", "TEXT", "acting", "write_hostile"]

ACTS = (
    "\x1b[2J\x1b]0;owned\x07\x9b31m",  # ANSI, OSC, C1
    "[bold red]x[/bold red][link=https://evil.example]l[/link]:boom:",  # rich
    "\u202elro\u2066\u200b\u2028\u2029\x85\x0b\x0c\r\n",  # bidirectional, invisible, other line ends
    "<script>alert(1)</script><img src=x onerror=alert(1)>&amp;\"'`",  # HTML
    "| a | [l](https://evil.example) ![i](x) ``` # h <!-- --> *b* _i_",  # Markdown
    "::error file=x::owned%0A\n::set-output name=a::b ]]> \ud800 \x00",  # GitHub, XML, what is no Unicode
)
TEXT = " ".join(ACTS)
NAME = "x\n\x1b[31m[red]<b>|`\u202e"
"""A name a file system takes."""
FORMULAS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "\r=1")


def write_hostile(root: Path) -> Path:
    """Write the sessions; the guard says something of the first."""
    log = LogWriter(f"session-{TEXT}", cwd=f"/{TEXT}")
    log.user(TEXT)
    log.add("request/header", {"header": {"config": {"model": f"=model {TEXT}"}}})
    for number in range(9):
        error = {"code": f"=code {TEXT}", "name": TEXT}
        log.result(log.call(name=f"=t {TEXT}", arguments=json.dumps({"a": TEXT})), TEXT, is_error=True, error=error)
        log.bash(f"=run {TEXT}", f"{TEXT}\n[exit code: 1]")
        address = json.dumps({"url": f"https://a.example/{TEXT}?{number}"})
        log.result(log.call(name="web_fetch", arguments=address), TEXT)
    log.add(f"odd/{TEXT}", {})
    log.lines.append(b'{"type":"' + TEXT.encode("utf-8", "surrogatepass"))
    log.write(root, folder=NAME)
    for number, formula in enumerate(FORMULAS):
        other = LogWriter(formula)
        other.user()
        other.bash(formula)
        other.result(other.call(name=formula, arguments=formula), formula, is_error=True)
        other.write(root, folder=f"formula-{number}")
    broken = root / "--p--" / f"broken-{NAME}" / "session.v4.jsonl"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(TEXT.encode("utf-8", "surrogatepass"))
    return root


def acting(text: str) -> set[str]:
    """Return the characters in a text that do something other than show themselves."""
    return {one for one in text if unicodedata.category(one) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}}
