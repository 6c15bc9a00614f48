from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaker.ecmascript import LINE_TERMINATORS, WHITESPACE
from breaker.failure import Classification, asks_for_status, classify, result_text
from breaker.rulesets import RULESETS, Ruleset

MEGABYTE = 1_000_000
RELEASED = [RULESETS["0.5.2"], RULESETS["0.8.7"], RULESETS["0.8"]]
OLD, RELEASE, PROMISED = RELEASED
ASKS = "curl -s -o /dev/null -w '%{http_code}' https://a.com"

Found = tuple[str, str] | None


def of_result(result: Mapping[str, object], *, shell: bool = True, command: str = "", ruleset: Ruleset = OLD) -> Found:
    failure = classify(result, shell=shell, command=command, ruleset=ruleset).failure
    return None if failure is None else (failure.reason, failure.detail)


def of_text(text: str, *, shell: bool = True, command: str = "", ruleset: Ruleset = OLD) -> Found:
    return of_result({"content": [{"type": "text", "text": text}]}, shell=shell, command=command, ruleset=ruleset)


def by_every_release(result: Mapping[str, object], *, shell: bool = True) -> Found:
    answers = {of_result(result, shell=shell, ruleset=ruleset) for ruleset in RELEASED}
    assert len(answers) == 1
    return answers.pop()


def text_by_every_release(text: str, *, shell: bool = True) -> Found:
    return by_every_release({"content": [{"type": "text", "text": text}]}, shell=shell)


# -- error flag and value ------------------------------------------------------------------------------------------

STRUCTURED: list[tuple[Mapping[str, object], Found]] = [
    ({}, None),
    ({"isError": False, "value": {"exitCode": 0}}, None),
    ({"isError": True}, ("error", "")),
    ({"isError": "true"}, None),
    ({"isError": 1}, None),
    ({"isError": True, "error": {"code": "ENOENT", "name": "FsError"}}, ("error", "ENOENT")),
    ({"isError": True, "error": {"name": "FsError"}}, ("error", "FsError")),
    ({"isError": True, "error": {"code": None, "name": "FsError"}}, ("error", "FsError")),
    ({"isError": True, "error": {"code": 5, "name": "FsError"}}, ("error", "")),
    ({"isError": True, "error": {"code": "", "name": "FsError"}}, ("error", "")),
    ({"isError": True, "error": {"message": "m", "info": {"name": "N", "code": "C"}}}, ("error", "")),
    ({"isError": True, "error": "boom"}, ("error", "")),
    ({"isError": True, "value": {"kind": "background", "exitCode": 1}}, ("error", "")),
    ({"value": {"kind": "background", "exitCode": 1}}, None),
    ({"value": {"exitCode": 2.0}}, ("exit", "2")),
    ({"value": {"exitCode": -1}}, ("exit", "-1")),
    ({"value": {"exitCode": 1e21}}, ("exit", "1e+21")),
    ({"value": {"exitCode": 0.5}}, ("exit", "0.5")),
    ({"value": {"exitCode": -0.0}}, None),
    ({"value": {"exitCode": True}}, None),
    ({"value": {"exitCode": "1"}}, None),
    ({"value": {"exitCode": 0, "timedOut": True, "timeoutMs": 5000}}, ("timeout", "5000ms")),
    ({"value": {"timedOut": True}}, ("timeout", "")),
    ({"value": {"timedOut": True, "timeoutMs": 0}}, ("timeout", "")),
    ({"value": {"timedOut": True, "timeoutMs": ""}}, ("timeout", "")),
    ({"value": {"timedOut": True, "timeoutMs": None}}, ("timeout", "")),
    ({"value": {"timedOut": True, "timeoutMs": []}}, ("timeout", "ms")),
    ({"value": {"timedOut": True, "timeoutMs": {}}}, ("timeout", "[object Object]ms")),
    ({"value": {"timedOut": True, "timeoutMs": "5s"}}, ("timeout", "5sms")),
    ({"value": {"timedOut": 1}}, None),
    ({"value": {"exitCode": 1, "timedOut": True}}, ("exit", "1")),
    ({"value": {"timedOut": True, "signal": "SIGKILL"}}, ("timeout", "")),
    ({"value": {"signal": "SIGKILL", "statusCode": 500}}, ("signal", "SIGKILL")),
    ({"value": {"signal": ""}}, None),
    ({"value": {"signal": 9}}, None),
    ({"value": {"statusCode": 404}}, ("http", "404")),
    ({"value": {"statusCode": 400.0}}, ("http", "400")),
    ({"value": {"statusCode": 399.5}}, None),
    ({"value": {"statusCode": True}}, None),
    ({"value": {"statusCode": "404"}}, None),
    ({"value": {"statusCode": 200, "sandbox": {"denied": True}}}, None),
    ({"value": {"sandbox": {"denied": True}}}, ("sandbox", "")),
    ({"value": {"sandbox": {"denied": True, "mode": "read-only"}}}, ("sandbox", "read-only")),
    ({"value": {"sandbox": {"denied": True, "mode": 5}}}, ("sandbox", "5")),
    ({"value": {"sandbox": {"denied": 1}}}, None),
    ({"value": {"aborted": True, "exitCode": None}}, None),
    ({"value": [1, 2]}, None),
    ({"value": "exitCode"}, None),
]


@pytest.mark.parametrize(("result", "expected"), STRUCTURED, ids=repr)
@pytest.mark.parametrize("shell", [True, False])
def test_error_flag_and_value(result: Mapping[str, object], expected: Found, *, shell: bool) -> None:
    assert by_every_release(result, shell=shell) == expected


def test_a_low_status_settles_it_whatever_the_text_says() -> None:
    text = "Traceback (most recent call last)\nValueError: x\nHTTP Error 500"
    result = {"value": {"statusCode": 200}, "content": [{"text": text}]}
    assert by_every_release(result) is None
    assert of_result(result, ruleset=RULESETS["0.5.0"]) is None
    assert of_result({**result, "content": [{"text": "(HTTP 500)"}]}, ruleset=RULESETS["0.5.0"]) == ("http", "500")


def test_an_exit_code_of_zero_does_not_stop_the_text_rules() -> None:
    assert by_every_release({"value": {"exitCode": 0}, "content": [{"text": "curl: (6) x"}]}) == ("curl", "6")


def test_what_is_no_shell_is_not_read() -> None:
    assert text_by_every_release("Fetched u (HTTP 404)", shell=False) is None
    assert of_text("Fetched u (HTTP 404)", shell=False, ruleset=RULESETS["0.5.0"]) == ("http", "404")
    assert by_every_release({"isError": False, "value": {"statusCode": 404}}, shell=False) == ("http", "404")


# -- words ---------------------------------------------------------------------------------------------------------

TRACEBACK = "Traceback (most recent call last)"

WORDS: list[tuple[str, Found]] = [
    ("", None),
    ("ok", None),
    # T1
    ("ok\n[exit code: 2]", ("exit", "2")),
    ("[exit code: -1]", ("exit", "-1")),
    ("[exit code: 007]", ("exit", "007")),
    ("[exit code: 0]\n[exit code: 3]", None),
    ("[exit code: 00]", None),
    ("[exit code: -0]", None),
    ("[exit code: --1]", None),
    ("[exit code: 1.5]", None),
    ("[exit code:1]", None),
    ("[exit code: ]\n[exit code: 4]", ("exit", "4")),
    ("[exit code: ٣]", None),
    ("[Exit code: 3]", None),
    # T2
    ("(HTTP 404)", ("http", "404")),
    ("(HTTP 400)", ("http", "400")),
    ("(HTTP 399)", None),
    ("(HTTP 200) then (HTTP 500)", None),
    ("(HTTP 4040) (HTTP 40) (HTTP 500)", ("http", "500")),
    ("(HTTP ٤٠٤)", None),
    # T3
    ("[timed out after 30000ms]", ("timeout", "30000ms")),
    ("[timed out after ms]", None),
    ("[timed out after 0ms]", ("timeout", "0ms")),
    # T4
    ("[killed by signal: SIGKILL]", ("signal", "SIGKILL")),
    ("[killed by signal: a\nb]", ("signal", "a\nb")),
    ("[killed by signal: \n]", ("signal", "\n")),
    ("[killed by signal: ]", None),
    ("[killed by signal: ] [killed by signal: X]", ("signal", "X")),
    ("[killed by signal: X", None),
    ("[killed by signal: [killed by signal: X]", ("signal", "[killed by signal: X")),
    ("[killed by signal:  ]", ("signal", " ")),
    # T5
    ("x [sandbox: file access denied by policy", ("sandbox", "")),
    ("[sandbox: denied", None),
    # T6
    (TRACEBACK, ("exception", "")),
    (f"x{TRACEBACK}:\n  File\nurllib.error.URLError: <x>", ("exception", "urllib.error.URLError")),
    (f"{TRACEBACK}:\nValueError: a\n\n  a.b.KeyError: b\nError: c", ("exception", "a.b.KeyError")),
    (f"XError: a\n{TRACEBACK}", ("exception", "XError")),
    (f"XError: a\r{TRACEBACK}\u2029YException: b", ("exception", "YException")),
    ("Traceback (most recent call", None),
    # T7
    ("  a.b.CError: x", ("exception", "CError")),
    ("ValueError: x\nKeyError: y", ("exception", "ValueError")),
    ("x\n\n \t\n  \ufeffSomeException: y", ("exception", "SomeException")),
    ("x\u2028ValueError: y", ("exception", "ValueError")),
    ("x\u2029ValueError: y", ("exception", "ValueError")),
    ("x\rValueError: y", ("exception", "ValueError")),
    ("\ufeffValueError: y", ("exception", "ValueError")),
    ("\v\fValueError: y", ("exception", "ValueError")),
    ("x\u0085ValueError: y", None),
    ("x\vValueError: y", None),
    ("x\fValueError: y", None),
    ("\u001cValueError: y", None),
    ("foo ValueError: x", None),
    ("Error: x", None),
    ("a.Error: x", None),
    ("Exception: x", None),
    ("XError:x", None),
    ("XError:\tx", None),
    ("XErrors: x", None),
    ("1Error: x", None),
    ("_Error: x", ("exception", "_Error")),
    ("xError: x", ("exception", "xError")),
    ("XErrorException: x", ("exception", "XErrorException")),
    ("a..b.XError: x", ("exception", "XError")),
    (".XError: x", None),
    ("1a.XError: x", None),
    ("éError: x", None),
    ("TypeError: fetch failed", ("exception", "TypeError")),
    # T8
    ("HTTP Error 404: Not Found", ("http", "404")),
    ("HTTP Error 200: OK", ("http", "200")),
    ("HTTP Error 4040", ("http", "404")),
    ("HTTP Error 40", None),
    # T9
    ("curl: (6) Could not resolve", ("curl", "6")),
    ("curl: (0)", ("curl", "0")),
    ("curl: (x) curl: (7)", ("curl", "7")),
    ("curl: (٣)", None),
    # the order of the rules
    ("curl: (6)\nHTTP Error 404\nXError: y\n[exit code: 1]", ("exit", "1")),
    ("curl: (6)\nHTTP Error 404\nXError: y\n[exit code: 0]", ("exception", "XError")),
    ("curl: (6)\nHTTP Error 404", ("http", "404")),
    ("[killed by signal: X] (HTTP 500) [timed out after 1ms]", ("http", "500")),
    ("[killed by signal: X] [timed out after 1ms]", ("timeout", "1ms")),
]


@pytest.mark.parametrize(("text", "expected"), WORDS, ids=ascii)
def test_words_of_a_shell(text: str, expected: Found) -> None:
    assert text_by_every_release(text) == expected
    assert text_by_every_release(text, shell=False) is None


def test_the_first_release_stops_before_exceptions() -> None:
    first = RULESETS["0.5.0"]
    assert of_text("ValueError: x\nHTTP Error 404\ncurl: (6)", ruleset=first) is None
    assert of_text("[sandbox: file access denied]", ruleset=first) == ("sandbox", "")


def test_blocks_are_joined_by_newlines_and_empties_kept() -> None:
    result = {"content": [{"text": "a"}, {"text": 5}, {}, "odd", None, {"text": ""}, {"text": "ValueError: b"}]}
    assert result_text(result) == "a\n\n\n\n\n\nValueError: b"
    assert by_every_release(result) == ("exception", "ValueError")
    assert by_every_release({"content": [{"text": "[exit"}, {"text": "code: 1]"}]}) is None
    assert result_text({"content": "text"}) == ""
    assert result_text({}) == ""


# -- the field -----------------------------------------------------------------------------------------------------


def test_a_pipe_that_hides_the_exit_code_still_fails_by_its_traceback() -> None:
    text = "Traceback (most recent call last):\n  File x\nKeyError: 'a'"
    found = classify({"value": {"exitCode": 0}, "content": [{"text": text}]}, shell=True)
    assert found == Classification(failure=found.failure, evidence="text", rule="T6 traceback", words="KeyError:")
    assert found.failure is not None
    assert (found.failure.reason, found.failure.detail, found.failure.evidence) == ("exception", "KeyError", "text")


def test_a_quoted_end_marker_against_the_real_one() -> None:
    live = {"value": {"exitCode": 1}, "content": [{"text": "it said [exit code: 0]\n[exit code: 1]"}]}
    assert by_every_release(live) == ("exit", "1")
    log = classify({"value": {"exitCode": 0}, "content": [{"text": "log: [exit code: 2] here"}]}, shell=True)
    assert log.failure is not None
    assert (log.failure.reason, log.failure.detail, log.words) == ("exit", "2", "[exit code: 2]")


def test_a_page_that_speaks_of_errors_is_no_failure() -> None:
    page = {"isError": False, "value": {"statusCode": 200}, "content": [{"text": "HTTP Error 500"}]}
    assert by_every_release(page, shell=False) is None
    assert by_every_release(page, shell=True) is None


@pytest.mark.parametrize(
    ("result", "evidence", "rule"),
    [
        ({"isError": True}, "structured", "isError"),
        ({"value": {"exitCode": 1}}, "structured", "exitCode"),
        ({"value": {"kind": "background"}}, "structured", "background"),
        ({"value": {"statusCode": 200}}, "structured", "statusCode"),
        ({"content": [{"text": "[killed by signal: X]"}]}, "text", "T4 signal"),
        ({"content": [{"text": "fine"}]}, "none", "no sign of failure"),
        ({}, "none", "no sign of failure"),
    ],
    ids=repr,
)
def test_every_answer_names_its_rule_and_evidence(result: Mapping[str, object], evidence: str, rule: str) -> None:
    found = classify(result, shell=True)
    assert (found.evidence, found.rule) == (evidence, rule)
    assert found.failure is None or found.failure.evidence == evidence


def test_the_words_that_decided_are_given() -> None:
    def words(text: str) -> str:
        return classify({"content": [{"text": text}]}, shell=True).words

    assert words("a [killed by signal: X] b]") == "[killed by signal: X]"
    assert words("a\n  b.CError: d") == "b.CError:"
    assert words("a (HTTP 500)") == "(HTTP 500)"


# -- the status a curl was asked for -------------------------------------------------------------------------------

LEADING: list[tuple[str, Found]] = [
    ("404", ("http", "404")),
    ("404 https://a.com", ("http", "404")),
    ("\ufeff \n\t500\n", ("http", "500")),
    ("404x", ("http", "404")),
    ("404.5", ("http", "404")),
    ("404٣", ("http", "404")),
    ("400", ("http", "400")),
    ("599", ("http", "599")),
    ("200", None),
    ("302", None),
    ("600", None),
    ("4041", None),
    ("40", None),
    (" 12 404", None),
    ("153226 /tmp/x", None),
    ("x404", None),
    ("HTTP/1.1 404", None),
    ("٤٠٤", None),
    ("\x1c404", None),
    ("curl: (6) x\n404", ("curl", "6")),
    ("404\ncurl: (6) x", ("curl", "6")),
    ("404 [exit code: 3]", ("exit", "3")),
    ("404 [exit code: 0]", ("http", "404")),
]


@pytest.mark.parametrize(("text", "expected"), LEADING, ids=ascii)
def test_a_leading_status_fails_where_it_was_asked_for(text: str, expected: Found) -> None:
    assert of_text(text, command=ASKS, ruleset=PROMISED) == expected


@pytest.mark.parametrize("name", ["0.5.2", "0.8.7"])
def test_releases_without_the_rule_do_not_read_it(name: str) -> None:
    assert of_text("404", command=ASKS, ruleset=RULESETS[name]) is None


def test_the_rule_is_for_shells_and_yields_to_a_status() -> None:
    assert of_text("404", command=ASKS, ruleset=PROMISED, shell=False) is None
    low = {"value": {"statusCode": 200}, "content": [{"text": "404"}]}
    assert of_result(low, command=ASKS, ruleset=PROMISED) is None
    zero = {"value": {"exitCode": 0}, "content": [{"text": "404"}]}
    assert of_result(zero, command=ASKS, ruleset=PROMISED) == ("http", "404")
    assert classify(zero, shell=True, command=ASKS, ruleset=PROMISED).rule == "-w leading status"


@pytest.mark.parametrize(
    "command",
    [
        ASKS,
        'curl -w "%{http_code}" u',
        "curl -w '%{response_code}\\n' u",
        "curl -w 'code=%{http_code} size=%{size_download}' u",
        "curl --write-out '%{http_code}' u",
        "curl --write-out='%{http_code}' u",
        "curl -w'%{http_code}' u",
        "curl -sw '%{http_code}' u",
        "curl -sLw '%{http_code}' u",
        "curl -4sw '%{http_code}' u",
        "/usr/bin/curl -w '%{http_code}' u",
        "A=1 curl -w '%{http_code}' u",
        "x=$(curl -w '%{http_code}' u)",
        "echo `curl -w '%{http_code}' u`",
        "(curl -w '%{http_code}' u)",
        "X=curl; $X -w '%{http_code}' u; CURL=curl",
        "cd /x && curl -w '%{http_code}' u",
        "timeout 5 curl u -w '%{http_code}'",
    ],
)
def test_commands_that_ask_curl_for_the_status(command: str) -> None:
    assert asks_for_status(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "curl u",
        "curl -w '%{size_download}' u",
        "curl -s '%{http_code}' u",
        "curl -W '%{http_code}' u",
        "curl -w x '%{http_code}' u",
        "curl -w",
        "wget -w '%{http_code}' u",
        "echo 'curl -w %{http_code} u'",
        "mycurl -w '%{http_code}' u",
        "curl.exe -w '%{http_code}' u",
        "curl -ws '%{http_code}' u",
        "curl -- writeout '%{http_code}'",
        "curl --write-outs='%{http_code}' u",
    ],
)
def test_commands_that_do_not_ask_curl_for_the_status(command: str) -> None:
    assert not asks_for_status(command)
    assert of_text("404", command=command, ruleset=PROMISED) is None


# -- every text ----------------------------------------------------------------------------------------------------

NAME_START = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
NAME = NAME_START | set("0123456789")


def raised_names(text: str) -> list[tuple[str, str]]:
    """Find exception lines the slow way: dotted and bare name of every line that begins with one."""
    lines = [""]
    for character in text:
        if character in LINE_TERMINATORS:
            lines.append("")
        else:
            lines[-1] += character
    found: list[tuple[str, str]] = []
    for line in lines:
        dotted, colon, _ = line.lstrip(WHITESPACE).partition(": ")
        prefix, _, name = dotted.rpartition(".")
        whole = set(name) <= NAME and name[:1] in NAME_START and set(prefix) <= NAME | {"."}
        named = any(name.endswith(ending) and len(name) > len(ending) for ending in ("Error", "Exception"))
        if colon and whole and named and (not prefix or prefix[0] in NAME_START) and dotted[:1] != ".":
            found.append((dotted, name))
    return found


LINES = st.lists(
    st.sampled_from(
        [*LINE_TERMINATORS, *" \t\ufeff\x85\v.:aX1_é", "Error", "Exception", "Error: ", "ValueError: ", ": "]
    ),
    max_size=25,
).map("".join)


@given(LINES)
def test_exception_lines_are_what_a_slow_search_finds(text: str) -> None:
    names = raised_names(text)
    assert of_text(text) == (("exception", names[0][1]) if names else None)
    assert of_text(f"{text}\n{TRACEBACK}") == ("exception", names[-1][0] if names else "")


@given(st.text(), st.booleans())
def test_any_text_is_classified_alike_by_both_releases(text: str, shell: bool) -> None:
    assert of_text(text, shell=shell, ruleset=OLD) == of_text(text, shell=shell, ruleset=RELEASE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n" * MEGABYTE + "Error: x", None),
        ("\n" * MEGABYTE + "XError: x", ("exception", "XError")),
        (" " * MEGABYTE + "Error: x", None),
        ("\n " * (MEGABYTE // 2) + f"{TRACEBACK} Error: ", ("exception", "")),
        ("a." * (MEGABYTE // 2) + "Error: x", None),
        ("a." * (MEGABYTE // 2) + "XError: x", ("exception", "XError")),
        ("a" * MEGABYTE + " Error: x", None),
        ("Error" * (MEGABYTE // 5) + " Error: x", None),
        ("XError: x\n" * (MEGABYTE // 10) + TRACEBACK, ("exception", "XError")),
        ("[killed by signal: x" * (MEGABYTE // 20), None),
        ("[killed by signal: ]" * (MEGABYTE // 20), None),
        ("[exit code: " + "1" * MEGABYTE, None),
        ("[timed out after " + "1" * MEGABYTE, None),
        ("curl: (" * (MEGABYTE // 7) + "1" * MEGABYTE, None),
        ("(HTTP 40" * (MEGABYTE // 8), None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_megabyte_of_words_is_classified(text: str, expected: Found) -> None:
    assert of_text(text) == expected


def test_a_megabyte_command_is_asked_for_its_status() -> None:
    assert not asks_for_status("curl " + "-w x " * (MEGABYTE // 5) + "%{http_code}")
    assert not asks_for_status("A=" * (MEGABYTE // 2) + " curl %{http_code}")
