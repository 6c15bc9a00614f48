"""The releases as data: which there are, what each changes, and how each is held."""

from __future__ import annotations

import pytest

from breaker.engine import Breaker
from breaker.failure import classify
from breaker.measures import Call, Measurer
from breaker.rulesets import DEFAULT_RULESET, RULESETS, UnknownRulesetError, differences, predecessor, ruleset_named
from breaker.settings import Settings, SettingsError, known_keys, unknown_keys

SHELL_HTTP_RELEASES = ["0.6.1", "0.7.0", "0.8.2", "0.8.3", "0.8.7", "0.8"]
BLOCKED_BY_DEFAULT = ("curl", "wget", "httpie", "aria2c", "rclone", "yt-dlp", "youtube-dl")


def failure_of(text: str, release: str, *, shell: bool = True, command: str = "", value: object = None) -> str | None:
    result = {"isError": False, "value": value, "content": [{"type": "text", "text": text}]}
    found = classify(result, shell=shell, command=command, ruleset=RULESETS[release]).failure
    return None if found is None else f"{found.reason} {found.detail}"


def measures_of(command: str, release: str) -> list[str]:
    ruleset = RULESETS[release]
    measured = Measurer(Settings.from_config({}, ruleset), ruleset).measure(Call("bash", {"command": command}))
    return [measure for measure in measured.measures if measure.startswith(("net:", "host:"))]


def releases_where(holds: dict[str, bool]) -> list[str]:
    return [name for name, held in holds.items() if held]


# -- the table ---------------------------------------------------------------------------------------------------------


def test_every_release_stands_in_the_table_oldest_first_and_the_promise_last() -> None:
    assert list(RULESETS) == ["0.5.0", "0.5.1", "0.5.2", "0.5.3", "0.6.1", "0.7.0", "0.8.2", "0.8.3", "0.8.7", "0.8"]
    assert DEFAULT_RULESET is RULESETS["0.8"]
    assert all(name == ruleset.name for name, ruleset in RULESETS.items())


def test_what_holds_each_release_to_its_original() -> None:
    assert releases_where({name: rules.held_by == "vectors" for name, rules in RULESETS.items()}) == [
        "0.5.0",
        "0.5.2",
        "0.8.7",
    ]


def test_only_the_promise_carries_a_note_of_its_own() -> None:
    assert releases_where({name: rules.note != "as released" for name, rules in RULESETS.items()}) == ["0.8"]
    assert "no released code has all of it" in RULESETS["0.8"].note


def test_a_ruleset_is_found_by_name_and_an_unknown_one_names_the_known() -> None:
    assert ruleset_named("0.6.1") is RULESETS["0.6.1"]
    with pytest.raises(UnknownRulesetError, match=r"unknown ruleset '0\.9'; known: 0\.5\.0, 0\.5\.1, .*, 0\.8$"):
        ruleset_named("0.9")


# -- failures ----------------------------------------------------------------------------------------------------------


def test_text_rules_read_every_tool_in_the_first_release_only() -> None:
    found = {name: failure_of("Fetched u (HTTP 404)", name, shell=False) == "http 404" for name in RULESETS}
    assert releases_where(found) == ["0.5.0"]


@pytest.mark.parametrize(
    ("text", "failure"),
    [
        ("Traceback (most recent call last)\nValueError: x", "exception ValueError"),
        ("TypeError: x", "exception TypeError"),
        ("HTTP Error 404: x", "http 404"),
        ("curl: (6) x", "curl 6"),
    ],
)
def test_exceptions_and_curl_codes_are_read_from_the_second_release_on(text: str, failure: str) -> None:
    assert failure_of(text, "0.5.0") is None
    assert {failure_of(text, name) for name in RULESETS if name != "0.5.0"} == {failure}


def test_a_low_status_is_no_final_success_in_the_first_release() -> None:
    found = {name: failure_of("x\n[exit code: 2]", name, value={"statusCode": 200}) for name in RULESETS}
    assert found.pop("0.5.0") == "exit 2"
    assert set(found.values()) == {None}


def test_the_status_curl_writes_out_is_read_by_0_5_3_and_the_promise() -> None:
    command = "curl -s -o /dev/null -w '%{http_code}' https://a.com"
    found = {name: failure_of("404", name, command=command) == "http 404" for name in RULESETS}
    assert releases_where(found) == ["0.5.3", "0.8"]


# -- URLs --------------------------------------------------------------------------------------------------------------


def test_escaped_urls_are_unescaped_from_0_6_1_on() -> None:
    command = r"grep -oE 'http://127\.0\.0\.1:3080/\?token=x' log"
    before = ["net:0.0.0.127/", "host:0.0.0.127"]
    assert {name: measures_of(command, name) for name in RULESETS} == {
        name: before if name.startswith("0.5") else ["net:127.0.0.1/?token=x"] for name in RULESETS
    }


def test_ipv6_hosts_lose_their_brackets_and_can_be_local_from_0_6_1_on() -> None:
    before = ["net:[::1]/x", "host:[::1]"]
    assert {name: measures_of("curl http://[::1]/x", name) for name in RULESETS} == {
        name: before if name.startswith("0.5") else ["net:::1/x"] for name in RULESETS
    }


def test_a_port_that_is_no_number_is_cut_off_from_0_7_0_on() -> None:
    found = {name: measures_of("curl http://127.0.0.1:$PORT/health", name) for name in RULESETS}
    assert releases_where({name: measures == ["net:127.0.0.1/health"] for name, measures in found.items()}) == [
        "0.7.0",
        "0.8.2",
        "0.8.3",
        "0.8.7",
        "0.8",
    ]
    assert found["0.6.1"] == []


# -- settings ----------------------------------------------------------------------------------------------------------


def test_the_block_is_known_from_0_6_1_on() -> None:
    assert releases_where({name: "blockShellHttp" in known_keys(rules) for name, rules in RULESETS.items()}) == (
        SHELL_HTTP_RELEASES
    )


def test_0_6_1_lists_what_may_fetch() -> None:
    settings = Settings.from_config({}, RULESETS["0.6.1"])
    assert settings.shell_http_allow == ("git", "docker")
    assert settings.shell_http_block is None
    assert settings.as_config["shellHttpAllow"] == ["git", "docker"]
    assert "shellHttpBlock" not in settings.as_config
    given = Settings.from_config({"shellHttpAllow": ["rg"]}, RULESETS["0.6.1"])
    assert given.shell_http_allow == ("rg",)


def test_later_releases_list_what_may_not() -> None:
    found = {name: Settings.from_config({}, RULESETS[name]).shell_http_block for name in SHELL_HTTP_RELEASES[1:]}
    assert found.pop("0.7.0") == ("curl", "wget", "http", *BLOCKED_BY_DEFAULT[2:])
    assert set(found.values()) == {BLOCKED_BY_DEFAULT}
    assert Settings.from_config({}, RULESETS["0.8.2"]).shell_http_allow is None


def test_the_allow_list_must_be_a_list_where_it_is_known() -> None:
    with pytest.raises(SettingsError, match="`shellHttpAllow` must be a list of strings"):
        Settings.from_config({"shellHttpAllow": "git"}, RULESETS["0.6.1"])


def test_the_allow_list_is_ignored_before_0_6_and_removed_from_0_7_on() -> None:
    outcome: dict[str, str] = {}
    for name, ruleset in RULESETS.items():
        try:
            settings = Settings.from_config({"shellHttpAllow": ["git"]}, ruleset)
            outcome[name] = "read" if settings.shell_http_allow else "ignored"
        except SettingsError as error:
            outcome[name] = f"{error.key} {error.rule}"
    removed = "shellHttpAllow was removed: use `shellHttpBlock` (0.7.0)"
    assert list(outcome.values()) == ["ignored"] * 4 + ["read"] + [removed] * 5


def test_a_block_list_is_unknown_to_0_6_1() -> None:
    config = {"shellHttpBlock": ["curl"], "outputDir": "x", "maxBytes": 1}
    assert unknown_keys(config, RULESETS["0.6.1"]) == ["shellHttpBlock"]
    assert unknown_keys(config, RULESETS["0.7.0"]) == []
    assert unknown_keys(config, RULESETS["0.5.3"]) == ["shellHttpBlock", "outputDir", "maxBytes"]


@pytest.mark.parametrize(("key", "value"), [("outputDir", ""), ("maxBytes", 0), ("blockShellHttp", "yes")])
def test_keys_of_0_6_are_checked_from_0_6_on(key: str, value: object) -> None:
    Settings.from_config({key: value}, RULESETS["0.5.3"])
    with pytest.raises(SettingsError, match=f"`{key}`"):
        Settings.from_config({key: value}, RULESETS["0.6.1"])


# -- differences in words ----------------------------------------------------------------------------------------------


def test_a_release_does_not_differ_from_itself() -> None:
    assert [differences(ruleset, ruleset) for ruleset in RULESETS.values()] == [[]] * len(RULESETS)


def test_every_release_tells_what_it_changed() -> None:
    assert predecessor(RULESETS["0.5.0"]) is None
    for ruleset in list(RULESETS.values())[1:]:
        base = predecessor(ruleset)
        assert base is not None
        assert differences(ruleset, base), ruleset.name


def test_small_steps_are_told_whole() -> None:
    assert differences(RULESETS["0.5.2"], RULESETS["0.5.1"]) == [
        "descriptions of failures have single spaces, and words for a missing detail"
    ]
    assert differences(RULESETS["0.8"], RULESETS["0.8.7"]) == [
        "a 4xx or 5xx that leads the output of a curl asked for its status (`-w`) is a failure"
    ]
    assert differences(RULESETS["0.8.7"], RULESETS["0.8"]) == [
        "the status curl writes to its output (`-w`) is not read"
    ]


def test_a_release_with_a_policy_tells_all_of_it_to_one_without() -> None:
    told = differences(RULESETS["0.8.7"], RULESETS["0.5.2"])
    assert sum("shell HTTP is refused by command" in words for words in told) == 1
    assert told[-1] == "`shellHttpBlock` is curl, wget, httpie, aria2c, rclone, yt-dlp, youtube-dl by default"
    assert "there is no shell-HTTP policy" in differences(RULESETS["0.5.2"], RULESETS["0.8.7"])


def test_the_occurrence_track_is_the_same_in_every_release() -> None:
    seen: set[tuple[object, ...]] = set()
    for ruleset in RULESETS.values():
        guard = Breaker(ruleset=ruleset)
        call = guard.measure(Call("read", {"path": "a"}))
        decisions: list[object] = []
        for _ in range(14):
            ask = guard.ask(call)
            decision = guard.guard(call) if ask is None else guard.decline(call, ask)
            decisions.append((decision.action, decision.advisory and decision.advisory.stage))
        seen.add(tuple(decisions))
    (only,) = seen
    silent, denied = ("allow", None), ("deny", None)
    assert list(only) == [
        *[silent] * 6,
        ("allow", "warn"),
        *[silent] * 3,
        ("allow", "summarize"),
        ("ask-declined", None),
        denied,
        denied,
    ]
