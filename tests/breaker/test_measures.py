from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaker.ecmascript import canonical_json, parse_json
from breaker.kinds import KINDS, kind_of
from breaker.measures import Call, MeasuredCall, Measurer, is_shell_tool, is_url_tool, shell_command
from breaker.rulesets import RULESETS
from breaker.settings import Settings

OLD, NEW = "0.5.2", "0.8.7"


def measured(name: str, arguments: object, *, release: str = OLD, **config: object) -> MeasuredCall:
    ruleset = RULESETS[release]
    return Measurer(Settings.from_config(config, ruleset), ruleset).measure(Call(name, arguments))


def besides_exact(name: str, arguments: object, *, release: str = OLD, **config: object) -> list[str]:
    first, *others = measured(name, arguments, release=release, **config).measures
    assert first.startswith(f"exact:{name}:")
    return others


def of_command(command: str, *, tool: str = "bash", release: str = OLD, **config: object) -> list[str]:
    return besides_exact(tool, {"command": command}, release=release, **config)


def exact(name: str, arguments: object, **config: object) -> str:
    return measured(name, arguments, release=OLD, **config).measures[0]


# -- the released guard's examples ---------------------------------------------------------------------------------

LOCAL = "curl -s http://127.0.0.1:3000/h -o out.bin"
LOCAL_CMD = "cmd:curl:curl http://127.0.0.1:3000/h -o out.bin"

COMMANDS: list[tuple[str, list[str]]] = [
    (
        "curl -s https://api.example.com/x?p=0",
        [
            "verb:curl",
            "family:http-fetch",
            "cmd:curl:curl https://api.example.com/x?p=0",
            "net:api.example.com/x?p=0",
            "site:example.com",
            "host:api.example.com",
        ],
    ),
    (
        LOCAL,
        ["verb:curl", "family:http-fetch", LOCAL_CMD, "net:127.0.0.1/h", "site:127.0.0.1", "sink:out.bin"],
    ),
    (
        "curl http://127.0.0.1/a https://b.org/c",
        [
            "verb:curl",
            "family:http-fetch",
            "cmd:curl:curl http://127.0.0.1/a https://b.org/c",
            "net:127.0.0.1/a",
            "site:127.0.0.1",
            "net:b.org/c",
            "site:b.org",
            "host:b.org",
        ],
    ),
    (
        "curl https://a.com;ls",
        [
            "verb:curl",
            "family:http-fetch",
            "cmd:curl:curl https://a.com;ls",
            "net:a.com;ls/",
            "site:a.com;ls",
            "host:a.com;ls",
        ],
    ),
    ("curl https://a.com|jq .", ["verb:curl", "family:http-fetch", "cmd:curl:curl https://a.com|jq ."]),
    (
        "for u in https://a.com/1, https://a.com/1. (https://a.com/2); do :; done",
        [
            "verb:for",
            "cmd:for:for u in https://a.com/1, https://a.com/1. (https://a.com/2); do :; done",
            "net:a.com/1",
            "site:a.com",
            "host:a.com",
            "net:a.com/2",
        ],
    ),
    ("FOO=bar", []),
    ('"" foo', []),
    ("/usr/bin/", []),
    ("exec", []),
    (
        "sudo -u root -E env A=1 curl https://a.com",
        [
            "verb:curl",
            "family:http-fetch",
            "cmd:curl:sudo -u root -E env A=1 curl https://a.com",
            "net:a.com/",
            "site:a.com",
            "host:a.com",
        ],
    ),
    (
        "curl -m5 -A1 --max-time=3 --retry 2 -fsSLk -sS -o x https://a.com",
        [
            "verb:curl",
            "family:http-fetch",
            "cmd:curl:curl -o x https://a.com",
            "net:a.com/",
            "site:a.com",
            "host:a.com",
            "sink:x",
        ],
    ),
    (
        "curl -so x https://a.com",
        [
            "verb:curl",
            "family:http-fetch",
            "cmd:curl:curl -so x https://a.com",
            "net:a.com/",
            "site:a.com",
            "host:a.com",
        ],
    ),
    ("git commit -m first", ["verb:git", "cmd:git:git commit"]),
    ("HTTP GET x", ["verb:http", "family:http-fetch", "cmd:http:HTTP GET x"]),
    ("false", ["verb:false", "cmd:false:false"]),
    ("curl -m", ["verb:curl", "family:http-fetch", "cmd:curl:curl"]),
    ("-s", ["verb:-s"]),
    ("echo x > f", ["verb:echo", "cmd:echo:echo x > f", "sink:f"]),
    ('"" > f', ["sink:f"]),
    ("", []),
]


@pytest.mark.parametrize(("command", "measures"), COMMANDS)
@pytest.mark.parametrize("release", [OLD, NEW, "0.8"])
def test_measures_of_commands(command: str, measures: list[str], release: str) -> None:
    assert of_command(command, release=release) == measures


@pytest.mark.parametrize(
    ("command", "before", "after"),
    [
        (
            r"grep -oE 'http://127\.0\.0\.1:3080/\?token=x' log",
            ["net:0.0.0.127/", "site:0.0.0.127", "host:0.0.0.127"],
            ["net:127.0.0.1/?token=x", "site:127.0.0.1"],
        ),
        (
            r"curl -s https://a.com/x?b=2\&a=1",
            ["net:a.com/x?b=2", "site:a.com", "host:a.com"],
            ["net:a.com/x?a=1&b=2", "site:a.com", "host:a.com"],
        ),
        ("curl http://127.0.0.1:$PORT/x", [], ["net:127.0.0.1/x", "site:127.0.0.1"]),
        (
            "curl http://[::1]:80/x",
            ["net:[::1]/x", "site:[::1]", "host:[::1]"],
            ["net:::1/x", "site:::1"],
        ),
    ],
)
def test_measures_that_differ_by_release(command: str, before: list[str], after: list[str]) -> None:
    def addresses(release: str) -> list[str]:
        return [
            measure for measure in of_command(command, release=release) if kind_of(measure) in {"net", "site", "host"}
        ]

    assert addresses(OLD) == before
    assert addresses(NEW) == addresses("0.8") == after


def test_local_addresses_by_setting() -> None:
    assert measured("bash", {"command": LOCAL}).local
    assert of_command(LOCAL, localHosts="allow") == [LOCAL_CMD]
    assert not measured("bash", {"command": LOCAL}, localHosts="allow").local
    assert of_command(LOCAL, includeLocal=True)[-4:] == [
        "net:127.0.0.1/h",
        "site:127.0.0.1",
        "host:127.0.0.1",
        "sink:out.bin",
    ]
    assert not measured("bash", {"command": "curl http://127.0.0.1/a https://b.org/c"}).local
    assert not measured("bash", {"command": "ls"}).local


def test_a_fetch_tool_of_a_local_address() -> None:
    arguments = {"url": "http://localhost:3000/x"}
    family = "family:http-fetch"
    assert besides_exact("web_fetch", arguments) == ["net:localhost/x", "site:localhost", family]
    assert measured("web_fetch", arguments).local
    assert besides_exact("web_fetch", arguments, includeLocal=True)[2] == "host:localhost"
    assert besides_exact("web_fetch", arguments, localHosts="allow") == []
    assert not measured("web_fetch", arguments, localHosts="allow").local


FETCHED = ["net:api.x.com/a?p=1", "site:x.com", "host:api.x.com", "family:http-fetch"]


@pytest.mark.parametrize(
    ("arguments", "measures"),
    [
        ({"url": "https://api.x.com/a?p=1"}, FETCHED),
        ({"url": None, "href": "https://api.x.com/a?p=1"}, FETCHED),
        ({"uri": "https://api.x.com/a?p=1"}, FETCHED),
        ({"uri": "api.x.com/a?p=1", "href": None}, FETCHED),
        ({"url": "", "href": "https://x.com/q"}, []),
        ({"url": 0, "href": "https://x.com/q"}, []),
        ({"url": False, "href": "https://x.com/q"}, []),
        ({"url": "http://a|b", "href": "https://x.com/q"}, []),
        ({"query": "x"}, []),
        ("https://x.com/q", []),
        (None, []),
    ],
    ids=repr,
)
def test_measures_of_a_fetch_tool(arguments: object, measures: list[str]) -> None:
    assert besides_exact("web_fetch", arguments) == measures
    assert besides_exact("web_fetch", arguments, release=NEW) == measures


def test_tools_that_are_only_themselves() -> None:
    assert besides_exact("WebSearch", {"query": "x"}) == []
    assert besides_exact("read", {"path": "https://a.com"}) == []
    assert besides_exact("Bash", {"command": "curl https://a.com"}) == []


def test_a_shell_by_another_name() -> None:
    assert of_command("iwr https://x.com/a -OutFile b", tool="pwsh") == [
        "verb:iwr",
        "cmd:iwr:iwr https://x.com/a -OutFile b",
        "net:x.com/a",
        "site:x.com",
        "host:x.com",
    ]
    assert of_command("ls", tool="shell") == ["verb:ls", "cmd:ls:ls"]


@pytest.mark.parametrize(
    "arguments", [{"command": 5}, {"command": ["ls"]}, {"cmd": "ls"}, "ls", None, ["ls"]], ids=repr
)
def test_a_shell_without_a_command_text(arguments: object) -> None:
    assert besides_exact("bash", arguments) == []
    assert shell_command(Call("bash", arguments)) == ""


def test_a_measure_stands_once_at_its_first_place() -> None:
    assert of_command("wget https://a.com/x https://www.a.com/x#y")[3:] == ["net:a.com/x", "site:a.com", "host:a.com"]


def test_aliases_reach_the_measures() -> None:
    aliases = {"a.com": "B.org"}
    assert besides_exact("fetch", {"url": "https://www.a.com/x"}, hostAliases=aliases)[:3] == [
        "net:b.org/x",
        "site:b.org",
        "host:b.org",
    ]


# -- kinds of tools ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["web_fetch", "WebSearch", "research_tool", "mcp__browser", "BROWSE", "xweb_y", "fetch"]
)
def test_tools_that_fetch(name: str) -> None:
    assert is_url_tool(name)


@pytest.mark.parametrize("name", ["web", "read", "bash", "reſearch", "fech", "Web-x", ""])
def test_tools_that_do_not_fetch(name: str) -> None:
    assert not is_url_tool(name)


def test_shells_are_exact_names() -> None:
    assert [name for name in ("bash", "pwsh", "shell", "Bash", "sh", "bash ", "SHELL") if is_shell_tool(name)] == [
        "bash",
        "pwsh",
        "shell",
    ]


def test_every_measure_has_a_known_kind() -> None:
    command = "curl https://a.com -o x"
    assert {kind_of(measure) for measure in measured("bash", {"command": command}).measures} == set(KINDS)
    assert kind_of("net:a.com:80/x") == "net"


# -- reading a host's record ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "call"),
    [
        ({"name": "a", "arguments": {"x": 1}}, Call("a", {"x": 1})),
        ({"toolName": "a", "args": {"x": 1}}, Call("a", {"x": 1})),
        ({"tool": {"name": "a"}}, Call("a", {})),
        ({"name": None, "toolName": "a", "tool": {"name": "b"}}, Call("a", {})),
        ({"name": "", "toolName": "a"}, Call("", {})),
        ({"name": 5, "toolName": "a"}, Call("", {})),
        ({"tool": "a"}, Call("", {})),
        ({"name": "a", "arguments": "", "args": {"x": 1}}, Call("a", "")),
        ({"name": "a", "arguments": False, "args": {"x": 1}}, Call("a", False)),
        ({"name": "a", "arguments": 0}, Call("a", 0)),
        ({"name": "a", "arguments": None, "args": [1]}, Call("a", [1])),
        ({}, Call("", {})),
    ],
    ids=repr,
)
def test_a_call_is_read_from_a_record(record: dict[str, object], call: Call) -> None:
    assert Call.from_host(record) == call


# -- identity ------------------------------------------------------------------------------------------------------


def test_what_never_changes_identity() -> None:
    plain = exact("bash", {"command": "ls"})
    assert plain == 'exact:bash:{"command":"ls"}'
    decoys = {"description": "x", "timeoutMs": 5, "run_in_background": True, "justification": "y"}
    assert exact("bash", {**decoys, "command": "ls"}) == plain
    assert exact("bash", {"title": 1, "reason": 2, "comment": 3, "command": "ls"}) == plain
    assert exact("read", {"title": "t", "description": "d", "path": "p"}) == 'exact:read:{"path":"p"}'


def test_key_order_and_the_spelling_of_numbers_never_change_identity() -> None:
    one = parse_json('{"b": 1, "a": {"y": 1.0, "x": [1e0, 10e-1]}}')
    other = parse_json('{"a": {"x": [1.0, 1], "y": 1}, "b": 1.00}')
    assert exact("read", one) == exact("read", other) == 'exact:read:{"a":{"x":[1,1],"y":1},"b":1}'
    assert exact("read", {"a": 1}) != exact("read", {"a": "1"})
    assert exact("read", {"a": 1}) != exact("read", {"a": True})


def test_only_the_top_level_is_stripped() -> None:
    assert exact("read", {"a": {"description": "x"}}) == 'exact:read:{"a":{"description":"x"}}'


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (None, "{}"),
        ({}, "{}"),
        ("{bad", '{"value":"{bad"}'),
        ([1], '{"value":[1]}'),
        (0, '{"value":0}'),
        (False, '{"value":false}'),
        ({"__proto__": 1, "a": 2}, '{"a":2}'),
        ({"a": "\ud83d"}, r'{"a":"\ud83d"}'),
        ({"a": "\ud83d\ude00"}, '{"a":"\U0001f600"}'),
        ({"10": 1, "9": 2}, '{"9":2,"10":1}'),
    ],
    ids=ascii,
)
def test_identity_of_odd_arguments(arguments: object, text: str) -> None:
    assert exact("t", arguments) == f"exact:t:{text}"


def test_ignored_arguments_by_setting() -> None:
    arguments = {"command": "ls", "description": "x", "timeoutMs": 1, "title": "t", "a": 1, "b": 2}
    assert exact("bash", arguments, ignoreArgs={"bash": ["a"]}) == 'exact:bash:{"b":2,"command":"ls"}'
    assert exact("bash", arguments, ignoreArgs={"*": ["a"]}) == 'exact:bash:{"b":2,"command":"ls","title":"t"}'
    assert exact("read", arguments, ignoreArgs={"*": [], "read": ["command", "title"]}) == (
        'exact:read:{"a":1,"b":2,"description":"x","timeoutMs":1}'
    )
    assert exact("read", {"a": 1, "b": 2, "cd": 3}, ignoreArgs={"read": "abcd"}) == 'exact:read:{"cd":3}'
    assert exact("read", {"a": 1}, ignoreArgs={"read": None, "*": 5}) == 'exact:read:{"a":1}'


def test_arguments_that_are_no_object_can_be_ignored_by_their_wrapper() -> None:
    assert exact("t", "text", ignoreArgs={"*": ["value"]}) == "exact:t:{}"
    assert exact("t", [1], ignoreArgs={"t": "value", "*": ["value"]}) == "exact:t:{}"


@pytest.mark.parametrize("name", ["constructor", "toString", "valueOf", "hasOwnProperty", "__proto__"])
def test_names_that_objects_inherit_have_no_list(name: str) -> None:
    assert exact(name, {"a": 1, "title": 2}) == f'exact:{name}:{{"a":1}}'


# -- which tools are watched ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "config", "tracked"),
    [
        ("read", {}, True),
        ("todo_write", {}, False),
        ("todo_write", {"exclude": []}, True),
        ("Todo_write", {}, True),
        ("todo_write\n", {}, True),
        ("", {}, False),
        ("", {"include": ["*"]}, False),
        ("read", {"include": ["re*"]}, True),
        ("write", {"include": ["re*"]}, False),
        ("read", {"include": ["re*"], "exclude": ["*ad"]}, False),
        ("read", {"include": [""]}, False),
        ("mcp__a__b", {"exclude": ["mcp__*__b"]}, False),
        ("mcp__a__c", {"exclude": ["mcp__*__b"]}, True),
        ("a.b", {"exclude": ["a?b", "a.", "[ab].b"]}, True),
        ("axb", {"exclude": ["a.b"]}, True),
        ("a\nb", {"exclude": ["a*b"]}, True),
        ("a\u2028b", {"exclude": ["a*b"]}, True),
        ("a\x85b", {"exclude": ["a*b"]}, False),
        ("a\nb", {"exclude": ["a\nb"]}, False),
        ("aXbYbZ", {"exclude": ["a*b*Z"]}, False),
        ("aXbYbZ", {"exclude": ["a**b**Z"]}, False),
        ("abab", {"exclude": ["*ab"]}, False),
        ("ab", {"exclude": ["a*b*b"]}, True),
    ],
)
def test_tracking(name: str, config: dict[str, object], *, tracked: bool) -> None:
    assert measured(name, {}, release=OLD, **config).tracked is tracked


def matches(pattern: str, name: str) -> bool:
    """Match a pattern the slow way, by trying every run for every star."""
    if not pattern:
        return not name
    if pattern[0] != "*":
        return name[:1] == pattern[0] and matches(pattern[1:], name[1:])
    free = next((at for at, character in enumerate(name) if character in "\n\r\u2028\u2029"), len(name))
    return any(matches(pattern[1:], name[length:]) for length in range(free + 1))


@given(st.text("ab*\n.", max_size=7), st.text("ab\n.", min_size=1, max_size=8))
def test_patterns_match_what_a_slow_matcher_matches(pattern: str, name: str) -> None:
    assert measured(name, {}, exclude=[pattern]).tracked is not matches(pattern, name)


def test_many_stars_do_not_multiply() -> None:
    pattern = "*a" * 40 + "b"
    assert measured("a" * 20_000, {}, exclude=[pattern]).tracked
    assert not measured("a" * 20_000 + "b", {}, exclude=[pattern]).tracked
    assert measured("a" * 20_000, {}, exclude=["*" * 5_000 + "b"]).tracked


# -- cases from the field ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "measures"),
    [
        ("cat <<EOF > x\nfoo bar\nEOF", ["verb:cat", "cmd:cat:cat <<EOF > x foo bar EOF", "sink:x"]),
        ("echo 'a  b' \"c\"", ["verb:echo", "cmd:echo:echo a  b c"]),
        ("cd x && make", ["verb:cd", "cmd:cd:cd x && make"]),
        ("A=1 B=2 make", ["verb:make", "cmd:make:make"]),
        ('bash -c "ls -la; pwd"', ["verb:bash", "cmd:bash:bash -c ls -la; pwd"]),
        ("ls # twice", ["verb:ls", "cmd:ls:ls # twice"]),
        ("# only", ["verb:#", "cmd:#:# only"]),
    ],
)
def test_shell_shapes(command: str, measures: list[str]) -> None:
    assert of_command(command, release="0.8") == measures


@pytest.mark.parametrize(
    "url",
    [
        "https://a.com/x/?p=1&q=2",
        "https://a.com/x?q=2&p=1",
        "https://a.com/x?p=1&q=2#top",
        "https://a.com:443/x?p=1&q=2",
        "http://a.com:8080/x?p=1&q=2",
        "https://user:pass@a.com/x?p=1&q=2",
        "https://WWW.A.com./x?p=1&q=2&utm_source=y",
    ],
)
def test_spellings_of_one_address(url: str) -> None:
    assert besides_exact("fetch", {"url": url}, release="0.8")[0] == "net:a.com/x?p=1&q=2"


@pytest.mark.parametrize(
    "url", ["https://a.com/X?p=1&q=2", "https://a.com/x?p=1", "https://b.a.com/x?p=1&q=2", "https://a.com//x"]
)
def test_addresses_that_differ(url: str) -> None:
    assert besides_exact("fetch", {"url": url}, release="0.8")[0] != "net:a.com/x?p=1&q=2"


# -- size ----------------------------------------------------------------------------------------------------------


def test_ten_thousand_addresses_in_one_command() -> None:
    command = "curl " + " ".join(f"https://h{number}.x{number % 7}.com/{number}" for number in range(10_000))
    found = of_command(command, release="0.8")
    assert len([measure for measure in found if kind_of(measure) == "host"]) == 10_000
    assert len([measure for measure in found if kind_of(measure) == "site"]) == 7


def test_arguments_nested_a_hundred_thousand_deep() -> None:
    nested: object = "x"
    for _ in range(100_000):
        nested = [nested]
    assert len(exact("read", {"a": nested})) == len('exact:read:{"a":"x"}') + 200_000


def test_a_megabyte_of_quotes_in_a_command() -> None:
    assert of_command("ls " + "'" * 1_000_000) == ["verb:ls", "cmd:ls:ls"]


DECOYS = {"description", "timeoutMs", "run_in_background", "justification", "reason", "title", "comment"}


@given(
    st.dictionaries(st.text() | st.sampled_from(sorted(DECOYS)), st.text()).filter(
        lambda given: "__proto__" not in given
    ),
    st.sampled_from(["bash", "web_fetch", "read"]),
    st.text(),
)
def test_measuring_any_call_is_stable_and_without_duplicates(
    arguments: dict[str, object], name: str, command: str
) -> None:
    given_call = {**arguments, "command": command, "url": command}
    first = measured(name, given_call, release="0.8")
    again = measured(name, dict(reversed(given_call.items())), release="0.8")
    assert first == again
    assert len(set(first.measures)) == len(first.measures)
    kept = {key: value for key, value in given_call.items() if key not in DECOYS}
    assert first.measures[0] == f"exact:{name}:{canonical_json(kept)}"
