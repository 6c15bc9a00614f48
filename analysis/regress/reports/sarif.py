"""A check as SARIF 2.1.0, for code scanning."""

from __future__ import annotations

import hashlib
import json
from urllib.parse import quote

from analysis.documents import JsonObject
from analysis.regress import RULES, Finding, Place, Verdict
from analysis.regress.reports.words import place_line, with_origin
from analysis.text import counted, plain
from breaker.version import __version__

__all__ = ["render_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_FINGERPRINT = "breaker/v1"
_FINGERPRINT_DIGITS = 32
_SHORTAGES = {
    "unreadable": "The sessions cannot be read, so nothing is known of them.",
    "not-enough": "There is too little to check.",
}


def render_sarif(verdict: Verdict) -> str:
    """Return the report as JSON text, in ASCII."""
    rules: dict[str, str] = {**RULES, **_SHORTAGES}
    indexes = {rule: number for number, rule in enumerate(rules)}
    config = _uri(verdict.config_name)
    results: list[JsonObject] = [
        {
            "ruleId": one.kind,
            "ruleIndex": indexes[one.kind],
            "level": "error",
            "message": {"text": plain(one.message)},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": config}}}],
        }
        for one in verdict.shortages
    ]
    results += [_result(finding, indexes[finding.rule], config) for finding in verdict.findings]
    run: JsonObject = {
        "tool": {
            "driver": {
                "name": "breaker",
                "version": __version__,
                "semanticVersion": __version__,
                "rules": [
                    {"id": rule, "shortDescription": {"text": text}, "defaultConfiguration": {"level": "error"}}
                    for rule, text in rules.items()
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "results": results,
        "properties": {
            "outcome": verdict.outcome,
            "settingsHash": verdict.plan.replay.settings.digest,
            "ruleset": verdict.plan.replay.ruleset.name,
        },
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _result(finding: Finding, index: int, config: str) -> JsonObject:
    text = [with_origin(finding)]
    for place in finding.places:
        text += [place_line(place), f"  {plain(place.explain)}"]
    if finding.places_untold:
        text.append(f"… and {counted(finding.places_untold, 'more session')}")
    places = [_location(place) for place in finding.places]
    result: JsonObject = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": "error",
        "message": {"text": "\n".join(text)},
        "locations": places[:1] or [_own_location(finding, config)],
        "relatedLocations": [{**location, "id": number} for number, location in enumerate(places[1:], start=1)],
        "partialFingerprints": {_FINGERPRINT: _fingerprint(finding)},
    }
    if finding.waiver is not None:
        result["suppressions"] = [{"kind": "external", "justification": plain(finding.waiver.reason)}]
    return result


def _location(place: Place) -> JsonObject:
    name = place.session if place.call is None else f"{place.session}#{place.call}"
    return {
        "physicalLocation": {"artifactLocation": {"uri": _uri(place.path)}},
        "logicalLocations": [{"name": plain(name), "fullyQualifiedName": plain(name), "kind": "object"}],
        "message": {"text": place_line(place)},
    }


def _own_location(finding: Finding, config: str) -> JsonObject:
    """Return the line that asks for it, where there is no place in a log."""
    origin = finding.origin
    if origin is None or origin.line is None:
        uri = config if finding.path is None else _uri(finding.path)
        return {"physicalLocation": {"artifactLocation": {"uri": uri}}}
    artifact = {"artifactLocation": {"uri": _uri(origin.file)}, "region": {"startLine": origin.line}}
    return {"physicalLocation": artifact}


def _fingerprint(finding: Finding) -> str:
    place = finding.places[0] if finding.places and finding.rule != "limit" else None
    parts = [finding.rule, finding.subject, place.stage or "" if place else "", place.measure or "" if place else ""]
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_FINGERPRINT_DIGITS]


def _uri(path: str) -> str:
    """Return a path as a URI; a relative one stays relative."""
    text = path.replace("\\", "/")
    return f"file://{quote(text)}" if text.startswith("/") else quote(text)
