from __future__ import annotations

import copy
import datetime
import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaker.ecmascript import parse_json
from breaker.rulesets import RULESETS, Ruleset
from breaker.settings import Settings, SettingsError, known_keys, nearest_key, unknown_keys

OLD, RELEASE, PROMISED = RULESETS["0.5.2"], RULESETS["0.8.7"], RULESETS["0.8"]
RELEASES = [OLD, RELEASE, PROMISED]

IGNORED: Mapping[str, object] = {
    "*": ["description", "timeoutMs", "run_in_background", "justification", "reason", "title", "comment"],
    "bash": ["description", "timeoutMs", "run_in_background", "justification"],
    "pwsh": ["description", "timeoutMs", "run_in_background", "justification"],
    "shell": ["description", "timeoutMs", "run_in_background", "justification"],
}
DEFAULTS: Mapping[str, object] = {
    "window": 16,
    "localHosts": "deny",
    "onLimit": "ask",
    "warnAt": 7,
    "summarizeAt": 11,
    "failWarnAt": 3,
    "failLimit": 5,
    "previewChars": 400,
    "resultPreviewChars": 800,
    "includeLocal": False,
    "exclude": ["todo_write"],
    "include": [],
    "ignoreArgs": IGNORED,
    "hostAliases": {
        "open-data.canada.ca": "open.canada.ca",
        "www.open.canada.ca": "open.canada.ca",
        "www.open-data.canada.ca": "open.canada.ca",
    },
    "limits": {
        "exact": 12,
        "cmd": 12,
        "net": 12,
        "sink": 12,
        "host": 16,
        "site": None,
        "family:http-fetch": None,
        "verb:curl": None,
        "verb:wget": None,
    },
}
SHELL_HTTP: Mapping[str, object] = {
    "blockShellHttp": True,
    "blockLocalHttp": False,
    "shellHttpBlock": ["curl", "wget", "httpie", "aria2c", "rclone", "yt-dlp", "youtube-dl"],
}


def refused(config: object, release: str = "0.8") -> SettingsError:
    with pytest.raises(SettingsError) as caught:
        Settings.from_config(config, RULESETS[release])
    return caught.value


def loaded(**config: object) -> Settings:
    return Settings.from_config(config)


# -- defaults and merging ------------------------------------------------------------------------------------------


def test_the_defaults() -> None:
    assert Settings.from_config().as_config == {**DEFAULTS, **SHELL_HTTP}
    assert Settings.from_config({}, RELEASE).as_config == {**DEFAULTS, **SHELL_HTTP}
    assert Settings.from_config({}, OLD).as_config == DEFAULTS


@pytest.mark.parametrize("config", [None, [], "text", 5, True, [1, [2, None]]], ids=repr)
def test_a_configuration_is_an_object(config: object) -> None:
    error = refused(config)
    assert error.key is None
    assert str(error).startswith("repeat-tool-breaker: config must be an object (got ")


def test_any_mapping_is_an_object() -> None:
    assert Settings.from_config(MappingProxyType({"window": 8})).window == 8


def test_scalars_and_lists_replace_and_maps_are_laid_over() -> None:
    settings = loaded(
        window=8,
        exclude=["a"],
        ignoreArgs={"bash": ["x"], "read": ["y"]},
        hostAliases={"a.com": "b.com"},
        limits={"host": 3, "net:a.com/x": 3, "site": 4, "exact": None},
    )
    assert settings.window == 8
    assert settings.exclude == ("a",)
    assert list(settings.ignore_args) == ["*", "bash", "pwsh", "shell", "read"]
    assert settings.as_config["ignoreArgs"] == {**IGNORED, "bash": ["x"], "read": ["y"]}
    assert settings.host_aliases["a.com"] == "b.com"
    assert len(settings.host_aliases) == 4
    assert settings.limits == {
        "exact": None,
        "cmd": 12,
        "net": 12,
        "sink": 12,
        "host": 3,
        "site": 4,
        "family:http-fetch": None,
        "verb:curl": None,
        "verb:wget": None,
        "net:a.com/x": 3,
    }


def test_a_configuration_is_neither_changed_nor_kept() -> None:
    config: dict[str, object] = {"limits": {"host": 3}, "exclude": ["a"], "ignoreArgs": {"x": ["y"]}}
    before = copy.deepcopy(config)
    settings = Settings.from_config(config)
    assert config == before
    config["exclude"] = ["b"]
    assert settings.exclude == ("a",)
    assert Settings.from_config().limits["host"] == 16


def test_unknown_and_inert_keys_are_accepted() -> None:
    settings = loaded(windows=3, pathAliases={}, limits={"readpath": 3, "writepath": 4})
    assert settings.window == 16
    assert settings.cap("readpath:x") == 3
    assert Settings.from_config({"windows": 3}) == Settings.from_config()
    assert unknown_keys({"windows": 3, "window": 4, "pathAliases": 1, "denyAfter": 2}, PROMISED) == [
        "windows",
        "pathAliases",
    ]


def test_later_keys_are_carried_by_a_release_that_does_not_read_them() -> None:
    config = {"blockShellHttp": "odd", "shellHttpBlock": 5, "outputDir": "", "windows": 3}
    settings = Settings.from_config(config, OLD)
    assert settings.as_config == {**DEFAULTS, "blockShellHttp": "odd", "shellHttpBlock": 5}
    assert unknown_keys(config, OLD) == ["blockShellHttp", "shellHttpBlock", "outputDir", "windows"]
    assert unknown_keys(config, RELEASE) == ["windows"]
    assert Settings.from_config({"shellHttpAllow": 5}, OLD).as_config == DEFAULTS


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("windows", "window"),
        ("warn_at", "warnAt"),
        ("WARNAT", "warnAt"),
        ("summariseAt", "summarizeAt"),
        ("limit", "limits"),
        ("failimit", "failLimit"),
        ("ignoreArg", "ignoreArgs"),
        ("zzz", None),
        ("", None),
    ],
)
def test_the_nearest_key(key: str, nearest: str | None) -> None:
    assert nearest_key(key, PROMISED) == nearest


def test_the_known_keys_are_those_of_the_release() -> None:
    assert known_keys(OLD) == tuple(DEFAULTS)
    assert known_keys(PROMISED) == (*DEFAULTS, *SHELL_HTTP, "outputDir", "maxBytes")
    assert nearest_key("blockShelHttp", PROMISED) == "blockShellHttp"
    assert nearest_key("blockShelHttp", OLD) is None


# -- removed keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "hint"),
    [
        ("denyAfter", "limits.exact"),
        ("warnAfter", "warnAt"),
        ("registerAdvisory", "warnAt"),
        ("maxSamePath", "exact:"),
        ("readTools", "name"),
        ("matchReadBySubstring", "name"),
    ],
)
@pytest.mark.parametrize("release", ["0.5.2", "0.8.7", "0.8"])
def test_removed_keys(key: str, hint: str, release: str) -> None:
    error = refused({"window": 1, key: None}, release)
    assert error.key == key
    assert str(error).startswith(f"repeat-tool-breaker: `{key}` was removed in 0.2.0: ")
    assert hint in str(error)
    assert unknown_keys({key: 1}, RULESETS[release]) == []


def test_the_allow_list_was_removed_in_0_7() -> None:
    error = refused({"shellHttpAllow": []})
    assert error.key == "shellHttpAllow"
    assert "`shellHttpBlock` (0.7.0)" in str(error)


def test_the_first_removed_key_is_named() -> None:
    assert refused({"readTools": 1, "denyAfter": 1}).key == "readTools"
    assert refused({"denyAfter": 1, "readTools": 1}).key == "denyAfter"


@pytest.mark.parametrize(
    "key", ["constructor", "toString", "valueOf", "hasOwnProperty", "__proto__", "isPrototypeOf", "__defineGetter__"]
)
@pytest.mark.parametrize("release", ["0.5.2", "0.8.7"])
def test_names_that_objects_inherit_count_as_removed(key: str, release: str) -> None:
    assert refused({key: 1}, release).key == key


# -- the order of validation ---------------------------------------------------------------------------------------

ORDER: list[tuple[str, object, object]] = [
    ("denyAfter", 1, None),
    ("ignoreArgs", [], {}),
    ("hostAliases", None, {}),
    ("limits", "x", {"0": 1, "host": 1}),
    ("exclude", "x", []),
    ("include", [1], []),
    ("shellHttpBlock", {}, []),
    ("window", 3, 4),
    ("localHosts", "ask", "odd"),
    ("localHosts", "odd", "deny"),
    ("onLimit", "odd", "ask"),
    ("includeLocal", 0, False),
    ("warnAt", "7", 7),
    ("summarizeAt", 1.5, 11),
    ("failWarnAt", True, 3),
    ("failLimit", 1, 5),
    ("blockShellHttp", None, True),
    ("blockLocalHttp", "no", False),
    ("outputDir", "", "x"),
    ("maxBytes", 0, 1),
    ("previewChars", 0, 1),
    ("resultPreviewChars", 0, 1),
    ("0", None, None),
    ("host", None, None),
]
"""Every check in order: the key, a value that breaks it, and one that mends it (the next row may break it again)."""

OF_LATER_RELEASES = {"shellHttpBlock", "blockShellHttp", "blockLocalHttp", "outputDir", "maxBytes"}


@pytest.mark.parametrize("release", ["0.5.2", "0.8.7", "0.8"])
def test_the_first_broken_rule_is_the_error(release: str) -> None:
    config: dict[str, object] = {key: broken for key, broken, _ in reversed(ORDER) if key not in {"0", "host"}}
    config["localHosts"] = "ask"
    for key, _, mended in ORDER:
        if release == "0.5.2" and key in OF_LATER_RELEASES:
            continue
        assert refused(config, release).key == key
        if key == "denyAfter":
            del config[key]
        elif key == "0":
            config["limits"] = {"host": 1}
        elif key == "host":
            config["limits"] = {}
        else:
            config[key] = mended
    assert Settings.from_config(config, RULESETS[release]).window == 4


def test_limits_are_checked_in_key_order() -> None:
    assert refused({"limits": {"zzz": 1, "cmd": 0, "exact": 0}}).key == "exact"
    assert refused({"limits": {"zzz": 1, "yyy": 1}}).key == "zzz"
    assert refused({"limits": {"exact": 1, "10": 1, "9": 1}}).key == "9"


# -- each key ------------------------------------------------------------------------------------------------------

NO_NUMBERS: list[object] = [True, False, "5", "", [], [5], {}, float("nan"), float("inf"), float("-inf"), 10**400]
LEAST = [("window", 4), ("previewChars", 1), ("resultPreviewChars", 1), ("maxBytes", 1)]


@pytest.mark.parametrize(("key", "least"), LEAST)
def test_integers_with_a_least_value(key: str, least: int) -> None:
    for good in (least, float(least), 1e6):
        assert Settings.from_config({key: good})
    for bad in (least - 1, least + 0.5, -5, None, [least], *NO_NUMBERS):
        assert refused({key: bad}).key == key


def test_a_whole_number_is_an_integer_however_spelled() -> None:
    settings = Settings.from_config(
        parse_json('{"window": 16.0, "warnAt": 7e0, "failLimit": 5.0, "limits": {"net": 3.0}}')
    )
    assert (settings.window, settings.warn_at, settings.fail_limit, settings.limits["net"]) == (16, 7, 5, 3)
    assert all(isinstance(value, int) for value in (settings.window, settings.fail_limit, settings.limits["net"]))


@pytest.mark.parametrize("key", ["warnAt", "summarizeAt", "failWarnAt"])
def test_stages(key: str) -> None:
    for off in (None, 0, -1, -2.5, 0.0, -0.0):
        assert Settings.from_config({key: off}).as_config[key] is None
    for number in (1, 2.0, 10**6):
        assert Settings.from_config({key: number}).as_config[key] == number
    for odd in NO_NUMBERS:
        assert refused({key: odd}).rule == "must be a number, or null/0/negative to disable it"
    for fraction in (0.5, 2.5):
        assert refused({key: fraction}).rule == "must be an integer"


def test_the_failure_limit_is_no_stage() -> None:
    assert loaded(failLimit=None).fail_limit is None
    assert loaded(failLimit=2).fail_limit == 2
    assert loaded(failLimit=2.5).fail_limit == 2.5
    for bad in (0, -1, 1, 1.99, *NO_NUMBERS):
        assert refused({"failLimit": bad}).key == "failLimit"


def test_limits() -> None:
    settings = loaded(limits={"cmd": None, "net": 2.5, "exact": 2, "net:a.com/x": 9})
    assert settings.cap("cmd:ls:ls") is None
    assert settings.cap("net:b.com/") == 2.5
    assert settings.cap("net:a.com/x") == 9
    assert settings.cap("site:a.com") is None
    assert settings.cap("odd:x") is None
    for bad in (0, 1, 1.99, -2, *NO_NUMBERS):
        error = refused({"limits": {"cmd": bad}})
        assert error.key == "cmd"
        assert '"cmd"' in str(error)


def test_a_whole_measure_goes_before_its_kind() -> None:
    settings = loaded(limits={"verb": 3, "net:a.com/x": None})
    assert settings.cap("verb:ls") == 3
    assert settings.cap("verb:curl") is None
    assert settings.cap("net:a.com/x") is None
    assert settings.cap("net:a.com/y") == 12


def test_choices_and_switches() -> None:
    assert loaded(localHosts="allow", onLimit="deny", includeLocal=True).on_limit == "deny"
    for key, bad in [
        ("localHosts", "Deny"),
        ("localHosts", None),
        ("localHosts", ["deny"]),
        ("onLimit", ""),
        ("onLimit", True),
        ("includeLocal", 1),
        ("includeLocal", "true"),
        ("includeLocal", None),
        ("blockShellHttp", 1),
        ("blockLocalHttp", None),
        ("outputDir", None),
        ("outputDir", 5),
    ]:
        assert refused({key: bad}).key == key
    assert "`onLimit`" in str(refused({"localHosts": "ask"}))


@pytest.mark.parametrize("key", ["exclude", "include", "shellHttpBlock"])
def test_lists_of_texts(key: str) -> None:
    assert Settings.from_config({key: ["a", ""]}).as_config[key] == ["a", ""]
    assert Settings.from_config({key: ("a",)}).as_config[key] == ["a"]
    for bad in ("a", None, [1], ["a", None], {"a": 1}, 5):
        assert refused({key: bad}).key == key


@pytest.mark.parametrize("key", ["ignoreArgs", "hostAliases", "limits"])
def test_maps(key: str) -> None:
    for bad in (None, [1], "x", 5, True):
        error = refused({key: bad})
        assert (error.key, error.value) == (key, bad)


def test_nothing_is_compared_with_anything() -> None:
    settings = loaded(warnAt=30, summarizeAt=2, failWarnAt=9, failLimit=2, limits={"exact": 99, "net": 2})
    assert (settings.warn_at, settings.summarize_at) == (30, 2)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"window": None}, "`window` must be an integer >= 4 (got null)"),
        ({"window": [1, [2, None]]}, "`window` must be an integer >= 4 (got 1,2,)"),
        ({"window": {"a": 1}}, "`window` must be an integer >= 4 (got [object Object])"),
        ({"window": 1e21 + 0.5, "previewChars": 1e-7}, "`previewChars` must be an integer >= 1 (got 1e-7)"),
        ({"includeLocal": "yes"}, "`includeLocal` must be true or false (got yes)"),
        ({"warnAt": True}, "`warnAt` must be a number, or null/0/negative to disable it (got true)"),
        ({"warnAt": 2.5}, "`warnAt` must be an integer (got 2.5)"),
        ({"exclude": ["a", 1.0]}, "`exclude` must be a list of strings (got a,1)"),
        ({"limits": {"cmd": 1}}, '"cmd" in `limits` must be a finite number >= 2, or null to disable it (got 1)'),
    ],
)
def test_errors_name_key_rule_and_value(config: object, message: str) -> None:
    assert str(refused(config)) == f"repeat-tool-breaker: {message}"


# -- what other formats than JSON bring ----------------------------------------------------------------------------


def test_keys_that_are_no_texts() -> None:
    assert Settings.from_config({2: 2, None: 3, True: 4, "window": 8}).window == 8
    assert Settings.from_config({"limits": {1: 3, "host": 4}}).limits["1"] == 3
    assert Settings.from_config({"ignoreArgs": {5: ["a"]}}).digest


def test_values_without_a_json_spelling() -> None:
    day = datetime.date(2026, 1, 1)
    for config in ({"hostAliases": {"a.com": day}}, {"ignoreArgs": {"read": {day}}}, {"ignoreArgs": {"read": {1: 2}}}):
        assert refused(config).key in {"hostAliases", "ignoreArgs"}
    assert refused({"window": day}).key == "window"
    assert refused({"blockShellHttp": day}, "0.5.2").key == "blockShellHttp"


def test_a_deeply_nested_value_is_named_as_any_other() -> None:
    deep: object = 1
    for _ in range(50_000):
        deep = [deep]
    assert str(refused({"window": deep})).endswith("(got 1)")


# -- hashing -------------------------------------------------------------------------------------------------------

SAME: list[dict[str, object]] = [
    {},
    {"window": 16.0},
    {"warnAt": 7, "window": 16},
    {"window": 16, "warnAt": 7.0},
    {"limits": {"host": 16, "exact": 12.0}},
    {"limits": {}, "hostAliases": {}, "ignoreArgs": {}},
    {"exclude": ("todo_write",)},
    {"unknown": 5},
    {"outputDir": "elsewhere", "maxBytes": 5},
    {"ignoreArgs": {"shell": ("description", "timeoutMs", "run_in_background", "justification")}},
    dict(DEFAULTS),
    dict(reversed(DEFAULTS.items())),
]


@pytest.mark.parametrize("config", SAME)
def test_one_hash_for_every_spelling_of_the_same_settings(config: dict[str, object]) -> None:
    settings = Settings.from_config(config)
    assert settings.digest == "sha256:" + DEFAULT_DIGEST
    assert settings == Settings.from_config()
    assert json.loads(settings.canonical) == {**DEFAULTS, **SHELL_HTTP}
    assert hashlib.sha256(settings.canonical.encode()).hexdigest() == DEFAULT_DIGEST
    assert hash(settings) == hash(Settings.from_config())


DEFAULT_DIGEST = "69217c24fd93dc94814b5284af3077750eddcf13fce78d4c21e1ba9089f77224"


@pytest.mark.parametrize(
    "config",
    [
        {"window": 17},
        {"warnAt": None},
        {"failLimit": None},
        {"failLimit": 4.5},
        {"limits": {"cmd": None}},
        {"limits": {"new": 2}},
        {"include": ["*"]},
        {"exclude": []},
        {"hostAliases": {"a.com": "b.com"}},
        {"blockShellHttp": False},
        {"ignoreArgs": {"bash": []}},
    ],
    ids=repr,
)
def test_another_hash_for_other_settings(config: dict[str, object]) -> None:
    assert Settings.from_config(config).digest != Settings.from_config().digest
    assert Settings.from_config(config) != Settings.from_config()


def test_every_way_to_switch_a_stage_off_is_the_same() -> None:
    assert len({loaded(warnAt=off).digest for off in (None, 0, -1, -2.5)}) == 1


def test_settings_equal_only_settings() -> None:
    assert Settings.from_config() != Settings.from_config().as_config


CONFIGS = st.fixed_dictionaries(
    {},
    optional={
        "window": st.integers(4, 40),
        "warnAt": st.none() | st.integers(-2, 20),
        "failLimit": st.none() | st.floats(2, 9),
        "includeLocal": st.booleans(),
        "exclude": st.lists(st.text(), max_size=3),
        "limits": st.dictionaries(st.text(), st.none() | st.floats(2, 1e300) | st.integers(2, 99), max_size=4),
        "hostAliases": st.dictionaries(st.text(), st.text(), max_size=3),
        "ignoreArgs": st.dictionaries(st.text(), st.lists(st.text(), max_size=3), max_size=3),
    },
)


@given(CONFIGS, st.sampled_from(RELEASES))
def test_loading_what_was_loaded_changes_nothing(config: dict[str, object], chosen: Ruleset) -> None:
    settings = Settings.from_config(config, chosen)
    again = Settings.from_config(settings.as_config, chosen)
    assert again == settings
    assert again.digest == settings.digest
    assert Settings.from_config(parse_json(settings.canonical), chosen).digest == settings.digest
