from pathlib import Path

import pytest

from analysis.configs import ConfigError, apply_sets, load_config
from breaker.settings import Settings

WANTED = {"warnAt": 9, "limits": {"host": 20, "site": None}}


def config(tmp_path: Path, name: str, text: str) -> dict[str, object]:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return load_config(path)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", 'warnAt = 9\n[limits]\nhost = 20\nsite = "null"\n'),
        ("a.toml", '[settings]\nwarnAt = 9\n[settings.limits]\nhost = 20\nsite = "null"\n'),
        ("a.json", '{"warnAt": 9, "limits": {"host": 20, "site": null}}'),
        ("a.json", '\ufeff{"settings": {"warnAt": 9, "limits": {"host": 20, "site": null}}}'),
        ("a.yaml", "warnAt: 9\nlimits: { host: 20, site: null }\n"),
        ("a.yml", "settings:\n  warnAt: 9\n  limits:\n    host: 20\n    site: ~\n"),
        ("A.JSON", '{"warnAt": 9, "limits": {"host": 20, "site": null}}'),
        (
            "cordis.patch.yml",
            "- id: repeat-tool-breaker\n  config:\n    warnAt: 9\n    limits: { host: 20, site: null }\n",
        ),
        (
            "cordis.patch.yml",
            "- id: other\n  config: !!js function () {}\n- insert:\n    - id: x\n      name: dsh-repeat-tool-breaker\n"
            "      config: { warnAt: 9, limits: { host: 20, site: null } }\n- remove: !custom [1, { a: b }]\n",
        ),
        (
            "cordis.patch.yml",
            "- insert:\n    - id: repeat-tool-breaker\n      config: { warnAt: 3, window: 8 }\n"
            "- id: repeat-tool-breaker\n  config: { warnAt: 9, limits: { host: 20, site: null } }\n",
        ),
    ],
)
def test_the_same_settings_in_every_notation(tmp_path: Path, name: str, text: str) -> None:
    read = config(tmp_path, name, text)
    assert read == WANTED
    assert Settings.from_config(read).warn_at == 9


@pytest.mark.parametrize(("name", "text"), [("a.toml", ""), ("a.json", "{}"), ("a.yml", ""), ("a.yml", "# nothing")])
def test_an_empty_file_changes_nothing(tmp_path: Path, name: str, text: str) -> None:
    assert config(tmp_path, name, text) == {}


def test_a_row_without_a_config_changes_nothing(tmp_path: Path) -> None:
    assert config(tmp_path, "cordis.patch.yml", "- id: repeat-tool-breaker\n") == {}


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.toml", "warnAt = 9\nwindow = = 3\n", "a.toml:2: "),
        ("a.json", '{"warnAt": 9,\n"window": }', "a.json:2: "),
        ("a.json", '{"warnAt": 9,\n "window": NaN}', "a.json:2: "),
        ("a.yml", "warnAt: 9\nwindow: [1\nx: 2\n", "a.yml:"),
        ("a.yml", "warnAt: 9\n\twindow: 3\n", "a.yml:2: "),
        ("a.yml", "a: 1\n---\nb: 2\n", "a.yml:"),
    ],
)
def test_what_does_not_parse_is_told_with_its_line(tmp_path: Path, name: str, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as told:
        config(tmp_path, name, text)
    assert place in str(told.value)
    assert str(tmp_path / name) in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("a.ini", "x", "not a settings file; its name must end in .toml, .json, .yml, .yaml"),
        ("settings", "x", "not a settings file"),
        ("a.json", "[]", "has no row with `id: repeat-tool-breaker`"),
        ("a.json", "5", "the settings must be an object"),
        ("a.yml", "just text", "the settings must be an object"),
        ("a.yml", "- id: other\n- text\n", "has no row with `id: repeat-tool-breaker`"),
        ("a.yml", "- id: repeat-tool-breaker\n  config: [1]\n", "must be an object"),
        ("a.json", '{"a":' * 100_000, "a.json"),
        ("a.yml", "[" * 5000, "a.yml"),
    ],
)
def test_what_holds_no_settings_is_told(tmp_path: Path, name: str, text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        config(tmp_path, name, text)


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot read the settings"):
        load_config(tmp_path / "nowhere.toml")
    (tmp_path / "a.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="cannot read the settings"):
        load_config(tmp_path / "a.json")
    (tmp_path / "folder.toml").mkdir()
    with pytest.raises(ConfigError, match="cannot read the settings"):
        load_config(tmp_path / "folder.toml")


def test_yaml_means_what_the_plugins_yaml_means(tmp_path: Path) -> None:
    """Dates and the words yes and on are text there; true and null are not."""
    read = config(
        tmp_path,
        "a.yml",
        "hostAliases: { a: 2024-01-01, b: yes, c: on, d: true, e: null }\nignoreArgs: { 12: [x] }\n",
    )
    assert read == {
        "hostAliases": {"a": "2024-01-01", "b": "yes", "c": "on", "d": True, "e": None},
        "ignoreArgs": {"12": ["x"]},
    }
    assert Settings.from_config(read)


def test_a_small_file_of_aliases_stays_small(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    assert len(config(tmp_path, "a.yml", "\n".join(lines))) == 30


def test_an_alias_of_itself_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"a\.yml"):
        config(tmp_path, "a.yml", "a: &a [*a]\n")


# Assignments


@pytest.mark.parametrize(
    ("assignment", "expected"),
    [
        ("warnAt=3", {"warnAt": 3}),
        ("warnAt=null", {"warnAt": None}),
        ("onLimit=deny", {"onLimit": "deny"}),
        ('onLimit="deny"', {"onLimit": "deny"}),
        ("exclude=[]", {"exclude": []}),
        ("limits.host=9", {"limits": {"site": None, "host": 9}}),
        ("limits.site=5", {"limits": {"site": 5}}),
        ("limits.net:a.com/x?b=1=3", {"limits": {"site": None, "net:a.com/x?b=1": 3}}),
        ('limits={"cmd": 4}', {"limits": {"cmd": 4}}),
        ("hostAliases.a.example=b.example", {"hostAliases": {"a.example": "b.example"}}),
        ('ignoreArgs.*=["x"]', {"ignoreArgs": {"*": ["x"]}}),
        ("name=a=b", {"name": "a=b"}),
        ("empty=", {"empty": ""}),
    ],
)
def test_an_assignment(assignment: str, expected: dict[str, object]) -> None:
    base: dict[str, object] = {"window": 8, "limits": {"site": None}}
    merged = apply_sets(base, [assignment])
    assert merged == {**base, **expected}
    assert base == {"window": 8, "limits": {"site": None}}


def test_a_later_assignment_wins() -> None:
    assert apply_sets({}, ["limits.host=9", "limits.cmd=4", "limits.host=null"]) == {"limits": {"host": None, "cmd": 4}}


@pytest.mark.parametrize("assignment", ["warnAt", "=3", "", "limits.=3", ".host=3", "warnAt.x=3"])
def test_a_bad_assignment_is_told(assignment: str) -> None:
    with pytest.raises(ConfigError, match="--set"):
        apply_sets({}, [assignment])


def test_an_entry_of_what_is_no_map_is_told() -> None:
    with pytest.raises(ConfigError, match="`limits` is not an object"):
        apply_sets({"limits": 5}, ["limits.host=3"])


def test_what_a_yaml_mapping_merges_may_be_replaced_and_is_no_key_given_twice(tmp_path: Path) -> None:
    path = tmp_path / "a.yml"
    path.write_text("limits: {host: 9}\nx: {y: {z: &b {<<: &a {host: 5, cmd: 6}, host: 7}}}\nhostAliases: {<<: *b}\n")
    assert load_config(path)["hostAliases"] == {"host": 7, "cmd": 6}
