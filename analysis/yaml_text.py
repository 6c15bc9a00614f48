"""YAML as the harness reads it: version 1.2, and a key given twice is a fault."""

from __future__ import annotations

import re
from typing import Any, ClassVar, cast

import yaml

from breaker.ecmascript import string_text

__all__ = ["YamlFault", "parse_yaml"]


class YamlFault(ValueError):
    """A text that is no YAML, or YAML the harness would refuse.

    Attributes:
        line: the line at fault, the first being 1; None where the parser names none.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        self.line = line
        super().__init__(message)


def parse_yaml(text: str) -> object:
    """Parse one document; every key of it becomes text.

    Raises:
        YamlFault: it does not parse, is nested too deeply, or a mapping has a key twice.
    """
    try:
        return _with_text_keys(cast("object", _TolerantLoader(text).get_single_data()), {})
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        raise YamlFault(f"{error.problem}", None if mark is None else mark.line + 1) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise YamlFault(" ".join(str(error).split())) from None


def _unread(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> None:
    del loader, suffix, node


_BOOLEAN_TAG = "tag:yaml.org,2002:bool"
_BOOLEAN = re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z")
_MERGE_TAG = "tag:yaml.org,2002:merge"
_OLDER_TAGS = frozenset({_BOOLEAN_TAG, "tag:yaml.org,2002:timestamp"})


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """Return how a plain scalar gets its type, by its first character: as in YAML 1.1, but for booleans and dates."""
    older = cast("dict[str, list[tuple[str, re.Pattern[str]]]]", yaml.SafeLoader.yaml_implicit_resolvers)
    resolvers = {first: [one for one in given if one[0] not in _OLDER_TAGS] for first, given in older.items()}
    for first in "tTfF":
        resolvers.setdefault(first, []).append((_BOOLEAN_TAG, _BOOLEAN))
    return resolvers


class _TolerantLoader(yaml.SafeLoader):
    """Safe YAML in which a tag of somebody else's is passed over unread, and dates, `yes` and `on` are text.

    So the harness' own YAML has it (version 1.2). A key given twice in one mapping is refused, as there.
    """

    yaml_multi_constructors: ClassVar[dict[str | None, Any]] = {"": _unread}
    yaml_implicit_resolvers = _resolvers()

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Looked at here, since building a mapping mixes in what it merges, which its own keys may well replace.
        mapping = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in mapping.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE_TAG:
                continue
            if key.value in lines:
                problem = f"`{key.value}` is given twice, first on line {lines[key.value]}"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        return mapping


def _with_text_keys(value: object, done: dict[int, object]) -> object:
    """Make every key of a YAML document text, as in an object of the harness.

    What the document names again by an alias is one object in the answer too, so that a small file stays small.
    """
    identity = id(value)
    if identity in done:
        return done[identity]
    if isinstance(value, dict):
        members = cast("dict[object, object]", value)
        value = {string_text(key): _with_text_keys(member, done) for key, member in members.items()}
    elif isinstance(value, list):
        value = [_with_text_keys(item, done) for item in cast("list[object]", value)]
    else:
        return value
    done[identity] = value
    return value
