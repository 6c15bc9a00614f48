"""Which shell commands are refused because they fetch over HTTP, release by release, and what the guard does then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaker.engine import Ask, Breaker
from breaker.failure import Failure
from breaker.measures import Call, MeasuredCall
from breaker.rulesets import RULESETS
from breaker.settings import Settings
from breaker.shellhttp import LOOPBACK, ShellHttpPolicy, this_machine
from breaker.shellhttp.rewrite import (
    drop_data_values,
    split_commands,
    strip_trivia,
    substitute_variables,
    without_inert_heredocs,
)

RELEASES = [name for name, ruleset in RULESETS.items() if ruleset.shell_http is not None]
BY_COMMAND = RELEASES[1:]
NEWEST = "0.8.7"


def policy_of(release: str, machine: frozenset[str] = LOOPBACK, /, **config: object) -> ShellHttpPolicy:
    ruleset = RULESETS[release]
    return ShellHttpPolicy(Settings.from_config(config, ruleset), ruleset, machine)


def refusing(command: str, **config: object) -> list[str]:
    """Return the releases that refuse a command."""
    return [name for name in RELEASES if policy_of(name, **config).verdict(command).refused]


def since(release: str) -> list[str]:
    return RELEASES[RELEASES.index(release) :]


def before(release: str) -> list[str]:
    return RELEASES[: RELEASES.index(release)]


# -- what the newest release was seen to answer ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "curl --version",
        "curl -s localhost:3000/x",
        'git commit -m "curl https://x.org/y fix"',
        'grep -rn "fetch(" src',
        "cat notes | grep iwr",
        'echo "curl https://x.org"',
        "printf 'curl https://x.org\\n'",
        "docker run alpine sh -c 'wget https://x.org/a'",
    ],
)
def test_refused_by_the_newest_release(command: str) -> None:
    assert policy_of(NEWEST).verdict(command).refused


@pytest.mark.parametrize(
    "command",
    [
        "echo https://x.org | xargs curl",
        "ssh 10.0.0.5 curl https://x.org",
        "command -p curl https://x.org",
        "git clone https://x.org/a.git",
        "http GET https://x.org",
        "bash script.sh",
        "echo curl https://x.org",
        "",
    ],
)
def test_allowed_by_the_newest_release(command: str) -> None:
    assert not policy_of(NEWEST).verdict(command).refused


def test_the_promise_decides_as_the_newest_release() -> None:
    assert RULESETS["0.8"].shell_http == RULESETS[NEWEST].shell_http


def test_a_release_without_the_policy_refuses_nothing() -> None:
    verdict = policy_of("0.5.2").verdict("curl https://x.org")
    assert not verdict.refused
    assert verdict.why == "ruleset 0.5.2 has no shell-HTTP policy"


# -- 0.6: by destination -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "refused"),
    [
        ("curl https://x.org", True),
        ("echo curl https://x.org", True),
        ("npm install https://x.org/a.tgz", True),
        ("curl", True),
        ("curl http://127.0.0.1:3000/x", False),
        ("curl http://127.0.0.1/ https://x.org", True),
        ("ls -l", False),
        ('python -c "import requests"', False),
        ("git clone https://x.org/a.git", False),
        ("cd /x && git fetch https://x.org/a.git | tee log", False),
        ("git clone https://x.org/a.git && curl https://x.org", True),
        ("git clone \\\n https://x.org/a.git", False),
        ("docker pull https://x.org/a; git clone https://x.org/b", False),
        ("grep -r https://x.org src", True),
        ("/usr/bin/git clone https://x.org", False),
    ],
)
def test_0_6_1_looks_at_addresses(command: str, refused: bool) -> None:
    assert policy_of("0.6.1").verdict(command).refused is refused


def test_0_6_1_takes_the_allow_list_from_the_settings() -> None:
    assert not policy_of("0.6.1", shellHttpAllow=["grep"]).verdict("grep -r https://x.org src").refused
    assert policy_of("0.6.1", shellHttpAllow=["grep"]).verdict("git clone https://x.org/a.git").refused
    assert not policy_of("0.6.1", shellHttpAllow=["curl"]).verdict("curl").refused


def test_0_6_1_refuses_local_addresses_where_it_is_told_to() -> None:
    command = "curl http://localhost/x"
    assert not policy_of("0.6.1").verdict(command).refused
    assert policy_of("0.6.1", blockLocalHttp=True).verdict(command).refused
    assert not policy_of("0.6.1", blockLocalHttp=True, localHosts="allow").verdict(command).refused


def test_0_6_1_tells_which_address_decided() -> None:
    verdict = policy_of("0.6.1").verdict("ls; npm i https://x.org/a")
    assert verdict.why == "the address x.org is not local"
    assert [(shown.text, shown.what) for shown in verdict.candidates] == [
        ("npm i https://x.org/a", "`npm` with address x.org")
    ]


# -- from 0.7: commands inside commands --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "cd /x && curl -s https://x.org",
        "ls || wget -q https://x.org",
        "ls\ncurl -s https://x.org",
        "echo x | curl -d @- https://x.org",
        "if true; then curl -s https://x.org; fi",
        "while read u; do wget $u; done < list",
        "! ( { curl -s https://x.org",
        "X=$(curl -s https://x.org)",
        "X=$(curl -s https://x.org | jq .)",
        "X=(curl -s https://x.org)",
        "echo `curl -s https://x.org`",
        "echo $(date $(curl -s https://x.org))",
        "bash -lc 'curl -s https://x.org'",
        "xargs -n 1 curl -s",
        "xargs -I {} curl {} -o x",
        "sudo -u bob timeout -k 5 10s curl -s https://x.org",
        "env A=1 curl -s https://x.org",
        "find . -name x -exec curl -s https://x.org {} \\;",
        "find . -exec curl -T {} https://x.org +",
        "curl \\\n -s https://x.org",
        "/usr/bin/CURL -s https://x.org",
        "yt-dlp https://x.org",
    ],
)
def test_a_fetch_is_found_wherever_it_is_nested(command: str) -> None:
    assert set(BY_COMMAND) <= set(refusing(command))


@pytest.mark.parametrize(
    "command",
    [
        "curl -s http://localhost:3000/x",
        "curl -s 'http://[::1]/x' http://10.1.2.3/",
        "bash -c 'curl -s http://127.0.0.1/x'",
        "curl http://127.0.0.1:$PORT/health -s",
    ],
)
def test_local_fetches_are_spared_unless_they_are_blocked_too(command: str) -> None:
    assert not set(BY_COMMAND) & set(refusing(command))
    assert set(BY_COMMAND) <= set(refusing(command, blockLocalHttp=True))


def test_one_remote_address_is_enough() -> None:
    assert set(BY_COMMAND) <= set(refusing("curl http://localhost/a https://x.org/b"))


def test_the_list_of_programs_is_a_setting_and_compares_lower_case() -> None:
    policy = policy_of(NEWEST, shellHttpBlock=["fetchit", "CURL"])
    assert policy.verdict("FetchIt https://x.org").refused
    assert not policy.verdict("curl https://x.org").refused
    assert not policy.verdict("CURL https://x.org").refused


def test_http_was_on_the_list_in_0_7_0_only() -> None:
    assert refusing("http GET x.org") == ["0.6.1", "0.7.0"]


# -- request APIs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "urllib.request.urlopen (u)",
        "requests.get(u)",
        "requests.Session()",
        "httpx.stream(u)",
        "httpx.Client()",
        "aiohttp.ClientSession",
        "http.client.HTTPConnection",
        "fetch('https://x.org')",
        "axios.get",
        "axios(u)",
        "require('got').get(u)",
        "got(u)",
        "Invoke-WebRequest u",
        "iwr u",
    ],
)
def test_calls_of_request_apis_are_fetches(code: str) -> None:
    assert since("0.8.2") == [name for name in since("0.8.2") if policy_of(name).verdict(f"x {code}").refused]


@pytest.mark.parametrize("code", ["import urllib", "pip install httpx", "ls axios", "npm i aiohttp", "x requests.y"])
def test_names_of_request_apis_were_fetches_in_0_7_0_only(code: str) -> None:
    assert refusing(code) == ["0.7.0"]


@pytest.mark.parametrize(
    "code", ["prefetch(u)", "refetch (u)", "FETCH(u)", "myrequests.get(u)", "iwrx u", "require('got')\n.get(u)"]
)
def test_lookalikes_are_no_request_apis(code: str) -> None:
    assert refusing(code) == []


def test_a_quoted_client_counts_when_it_is_called_soon_after() -> None:
    near, far = "x" * 60, "x" * 61
    assert policy_of(NEWEST).verdict(f"node 'axios'{near}.get(u)").refused
    assert not policy_of(NEWEST).verdict(f"node 'axios'{far}.get(u)").refused


# -- 0.8.2: a command that is local as a whole -------------------------------------------------------------------------


def test_a_wholly_local_text_passes_whatever_runs_from_0_8_2_on() -> None:
    command = "BASE=http://localhost:1; curl -s $BASE/x"
    assert refusing(command) == ["0.7.0"]
    assert refusing(command, blockLocalHttp=True) == RELEASES


# -- 0.8.3 -------------------------------------------------------------------------------------------------------------


def test_quotes_hide_separators_from_0_8_3_on() -> None:
    assert refusing("echo 'a;curl -s b'") == BY_COMMAND
    assert refusing("echo a';curl -s b'") == BY_COMMAND
    assert refusing("echo 'a'\\;curl -s b") == ["0.7.0", "0.8.2"]
    assert refusing("grep -e ';curl|wget' x") == ["0.7.0", "0.8.2"]


def test_a_listed_program_needs_an_argument_from_0_8_3_on() -> None:
    assert refusing("curl") == before("0.8.3")
    assert refusing("echo; wget; ls") == ["0.7.0", "0.8.2"]


@pytest.mark.parametrize("command", ["which curl", "type curl", "command -v curl", "command -V curl"])
def test_look_ups_are_no_fetches_from_0_8_3_on(command: str) -> None:
    assert not set(since("0.8.3")) & set(refusing(command))


def test_a_look_up_with_more_behind_it_is_opened_all_the_same() -> None:
    assert policy_of(NEWEST).verdict("command -v curl -s https://x.org").refused


@pytest.mark.parametrize("body", ["curl -s https://x.org", "x = requests.get(u)"])
def test_heredocs_are_read_for_programs_that_run_them(body: str) -> None:
    for marker, end in (("EOF", "EOF"), ("'EOF'", "  EOF "), ('"EOF"', "EOF")):
        for runs in ("bash", "python3 -", "sudo bash -s", "awk"):
            assert policy_of(NEWEST).verdict(f"{runs} <<{marker}\n{body}\n{end}\nls").refused
        for reads in ("cat", "tee notes.md", "cd x && bash"):
            assert not policy_of(NEWEST).verdict(f"{reads} <<-{marker}\n{body}\n{end}\nls").refused
    assert refusing(f"cat > notes <<EOF\n{body}\nEOF")[-1] == "0.8.2"


def test_what_follows_a_heredoc_is_read() -> None:
    assert policy_of(NEWEST).verdict("cat <<EOF\nx\nEOF\ncurl -s https://x.org").refused


def test_addresses_in_an_unread_heredoc_prove_nothing() -> None:
    assert policy_of("0.8.3").verdict("cat <<EOF\nhttp://localhost/\nEOF\ncurl -s x.org").refused


@pytest.mark.parametrize("opening", ["cat <<<foo", "echo $((1<<foo))"])
def test_here_strings_and_shifts_are_taken_for_heredocs(opening: str) -> None:
    command = f"{opening}\ncurl -s https://x.org"
    assert refusing(command) == before("0.8.3")
    assert policy_of(NEWEST).verdict(f"{opening}\nfoo\ncurl -s https://x.org").refused


@pytest.mark.parametrize(
    "command",
    [
        "ssh build 'curl -s https://x.org'",
        "ssh -p 22 bob@build 'curl -s https://x.org'",
        "sshpass -p x ssh build 'curl -s https://x.org'",
        "mosh build -- bash -c 'curl -s https://x.org'",
        "rsync -e ssh build: . && ssh $HOST 'curl -s https://x.org'",
        "A='b c' ssh build \"$(curl -s https://x.org)\"",
        "timeout 30 ssh build 'curl -s https://x.org'",
        "ssh",
    ],
)
def test_what_runs_elsewhere_is_not_looked_at_from_0_8_3_on(command: str) -> None:
    assert not set(since("0.8.3")) & set(refusing(command))


@pytest.mark.parametrize(
    "target", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "bob@localhost", "ip6-loopback"]
)
def test_a_shell_on_this_machine_is_looked_into(target: str) -> None:
    for name in since("0.8.3"):
        assert policy_of(name).verdict(f"ssh -o A=b -v {target} 'curl -s https://x.org'").refused


def test_what_this_machine_is_called_is_an_input() -> None:
    command = "ssh bob@{} 'curl -s https://x.org'"
    own = this_machine(["Devbox.example.com", "10.0.0.7", "fe80::7"])
    assert own > LOOPBACK
    for target in ("devbox.example.com", "DEVBOX", "10.0.0.7", "fe80::7"):
        assert not policy_of(NEWEST).verdict(command.format(target)).refused
        assert policy_of(NEWEST, own).verdict(command.format(target)).refused
    assert "10" not in own
    assert not policy_of(NEWEST, own).verdict(command.format("devbox2")).refused


def test_a_variable_as_target_means_elsewhere_unless_it_is_filled_in() -> None:
    command = "H=localhost; ssh $H 'curl -s https://x.org'"
    assert not policy_of("0.8.3").verdict(command).refused
    assert policy_of(NEWEST).verdict(command).refused
    assert not policy_of(NEWEST).verdict("ssh $H 'curl -s https://x.org'").refused


# -- 0.8.7 -------------------------------------------------------------------------------------------------------------


def test_variables_are_filled_in_from_0_8_7_on() -> None:
    assert policy_of(NEWEST).verdict("C=curl; $C -s https://x.org").refused
    assert not policy_of("0.8.3").verdict("C=curl; $C -s https://x.org").refused


def test_data_is_no_address_from_0_8_7_on() -> None:
    command = "curl -d https://x.org -H 'Origin: https://y.org' http://localhost:3000/"
    assert refusing(command) == ["0.6.1", "0.7.0", "0.8.2", "0.8.3"]


def test_what_code_is_given_stays_code() -> None:
    assert policy_of(NEWEST).verdict("node -e \"fetch('https://x.org')\"").refused
    assert not policy_of(NEWEST).verdict("curl -e https://y.org http://localhost/").refused


# -- the explanation ---------------------------------------------------------------------------------------------------


def test_a_refusal_names_the_candidate_that_decided_and_how_it_was_found() -> None:
    verdict = policy_of(NEWEST).verdict("cd /x; bash -c 'curl -s https://x.org'")
    assert verdict.why == "`curl` is on `shellHttpBlock`: curl -s https://x.org"
    assert [(shown.text, shown.found, shown.what, shown.decides) for shown in verdict.candidates] == [
        ("cd /x", "a command of the text", "`cd`, no fetch", False),
        ("bash -c 'curl -s https://x.org'", "a command of the text", "`bash`, no fetch", False),
        ("curl -s https://x.org", "what `bash` runs", "`curl` is on `shellHttpBlock`", True),
    ]


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("ls -l", "nothing in it fetches"),
        ("curl http://localhost/", "every address in it is local"),
        ("ssh far 'curl x y'", "nothing in it fetches"),
        ("grep 'fetch (' x", "a request API, `fetch (`: grep 'fetch (' x"),
    ],
)
def test_the_reason_in_words(command: str, why: str) -> None:
    assert policy_of(NEWEST).verdict(command).why == why


def test_the_short_answer_is_the_verdict_also_for_many_commands() -> None:
    policy = policy_of(NEWEST)
    commands = [f"{program} https://x.org/{number}" for number in range(300) for program in ("curl", "echo")]
    for _ in range(2):
        assert [policy.refuses(command) for command in commands] == [True, False] * 300


def test_a_fetch_spared_for_its_local_address_is_told() -> None:
    verdict = policy_of("0.7.0").verdict("curl http://localhost/")
    assert verdict.why == "every fetch in it has local addresses only"
    assert verdict.candidates[0].what == "`curl` is on `shellHttpBlock`, spared: every address is local"


def test_how_every_kind_of_candidate_was_found() -> None:
    command = 'a $(b) `c` "d e"; sudo f; find -exec g \\;'
    found = {shown.text: shown.found for shown in policy_of(NEWEST).verdict(command).candidates}
    assert found["b"] == "inside `$(...)`"
    assert found["c"] == "inside backquotes"
    assert found["d e"] == "a quoted word"
    assert found["f"] == "what `sudo` runs"
    assert found["g"] == "after `-exec`"


# -- the pieces --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a;b", ["a", "b"]),
        ("a && b||c|d&e\nf", ["a ", " b", "c", "d", "e", "f"]),
        ('a \';\' "b;\\";" \\; c', ['a \';\' "b;\\";" \\; c']),
        ("a 'open; b", ["a 'open; b"]),
        ("a \\\nb", ["a  b"]),
        ("", [""]),
    ],
)
def test_splitting_with_quotes(text: str, pieces: list[str]) -> None:
    assert split_commands(text, quotes_respected=True) == pieces


def test_splitting_without_quotes() -> None:
    assert split_commands("a ';' \\\n b", quotes_respected=False) == ["a '", "'   b"]


@given(st.text(alphabet="a'\"\\;&|\n "))
def test_splitting_loses_nothing_but_separators(text: str) -> None:
    joined = text.replace("\\\n", " ")
    position = 0
    for piece in split_commands(text, quotes_respected=True):
        found = joined.index(piece, position)
        assert set(joined[position:found]) <= set(";&|\n")
        position = found + len(piece)
    assert set(joined[position:]) <= set(";&|\n")


@pytest.mark.parametrize(
    ("piece", "bare"),
    [
        ("  do curl x ", "curl x"),
        ("then else if ! { ( curl x", "curl x"),
        ("document x", "document x"),
        ("A=$(curl x)", "curl x)"),
        ("A=(curl x)", "curl x)"),
        ("$(`curl x", "curl x"),
        ("( " * 9 + "x", "( x"),
        ("do", ""),
    ],
)
def test_trivia_before_a_command(piece: str, bare: str) -> None:
    assert strip_trivia(piece) == bare


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("A=1; echo $A ${A} $AB", "A=1; echo 1 1 $AB"),
        ("echo $A; A=1", "echo 1; A=1"),
        ("A=1 A=2; echo $A", "A=1 A=2; echo 1"),
        ("A='x y'; B=\"z\"; echo $A$B", "A='x y'; B=\"z\"; echo x yz"),
        ("A=$(date); echo $A", "A=$(date); echo $A"),
        ("A=$B; A=2; echo $A", "A=$B; A=2; echo 2"),
        ("A=$B; B=1; echo $A $B", "A=1; B=1; echo $A 1"),
        ("x --A=1 $A", "x --A=1 $A"),
        ("A=1|echo '$A'", "A=1|echo '1'"),
    ],
)
def test_filling_in_variables(text: str, filled: str) -> None:
    assert substitute_variables(text) == filled


@pytest.mark.parametrize(
    ("command", "bare"),
    [
        ("curl -d 'a b' u", "curl -d  u"),
        ("curl --data=x --json='a b' u", "curl --data --json u"),
        ('curl -H "a: \\"b" u', "curl -H  u"),
        ("curl '-d' x u", "curl '-d' x u"),
        ("curl 'a -d x' u", "curl 'a -d x' u"),
        ("curl -dx u", "curl -dx u"),
        ("curl u -w", "curl u -w"),
        ("curl --url=x u", "curl --url=x u"),
    ],
)
def test_dropping_the_values_of_data_flags(command: str, bare: str) -> None:
    assert drop_data_values(command) == bare


@given(st.lists(st.sampled_from(["a", "'b c'", "--url=x", "-o", "\\-d", '"-d x"', "https://x.org"])))
def test_without_data_flags_nothing_is_dropped(words: list[str]) -> None:
    command = " ".join(words)
    assert drop_data_values(command) == command


def test_heredocs_are_blanked_line_by_line() -> None:
    assert without_inert_heredocs("a\ncat <<E\nb\nc\nE\nd") == "a\ncat <<E\n\n\nd"
    assert without_inert_heredocs("bash <<E\nb\nE\nd") == "bash <<E\nb\nd"
    assert without_inert_heredocs("cat <<E\nb") == "cat <<E\n"
    assert without_inert_heredocs("cat << 2\nb") == "cat << 2\nb"


# fmt: off
WORDS = [
    "curl", "https://x.org", "http://localhost", "ssh", "-d", "-c", "bash", "sudo", "<<E", "E", "A=1", "$A", "which",
    "'", '"', "\\", "$(", ")", "`", ";", "|", "&", "\n", " ", " ", "fetch(", " -exec ", "\ud800",
]
# fmt: on


# -- hostile commands --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        "$(" * 20_000,
        "$(a " * 10_000 + ")" * 10_000,
        "`" * 20_000,
        "sudo " * 20_000,
        "'" * 19_999,
        '"' * 19_999,
        "\\" * 19_999,
        "a=" * 10_000 + "$a" * 10_000,
        "<<A\n" * 10_000,
        " -exec x" * 10_000,
        "curl " + "-d " * 10_000,
        "'got'" * 10_000,
        "{ " * 10_000,
        "ssh -v " * 10_000,
    ],
    ids=lambda command: command[:8],
)
def test_hostile_commands_get_a_verdict(command: str) -> None:
    for name in RELEASES:
        verdict = policy_of(name).verdict(command)
        texts = [shown.text for shown in verdict.candidates]
        assert len(texts) == len(set(texts)) < 100
        assert verdict.complete


def test_variables_cannot_blow_a_command_up() -> None:
    command = "A=" + "x" * 100_000 + " " + "$A" * 1_000
    assert len(substitute_variables(command)) < len(command) + (1 << 20)


def test_a_command_too_nested_to_open_whole_says_so() -> None:
    command = '$(sudo x $(env y `nice "z z" -exec $(watch "q q")` ' * 400
    verdict = policy_of(NEWEST).verdict(command)
    assert not verdict.complete
    assert verdict.why == "nothing that was opened in it fetches"


def test_nesting_is_followed_six_levels_deep() -> None:
    def nested(levels: int) -> str:
        return "$(echo " * levels + "$(curl -s x.org" + ")" * (levels + 1)

    assert policy_of(NEWEST).verdict(f"echo {nested(5)}").refused
    assert not policy_of(NEWEST).verdict(f"echo {nested(6)}").refused


@given(st.lists(st.sampled_from(WORDS), max_size=40).map("".join))
def test_every_text_gets_a_verdict_that_its_candidates_bear_out(command: str) -> None:
    for name in RELEASES:
        policy = policy_of(name)
        verdict = policy.verdict(command)
        assert policy.refuses(command) is verdict.refused
        if name in BY_COMMAND:
            assert sum(shown.decides for shown in verdict.candidates) == verdict.refused
        if verdict.refused:
            assert policy_of(name, blockLocalHttp=True).verdict(command).refused


# -- the guard ---------------------------------------------------------------------------------------------------------


def guard_of(release: str = NEWEST, *, shell_http: bool = True, **config: object) -> Breaker:
    ruleset = RULESETS[release]
    return Breaker(Settings.from_config(config, ruleset), ruleset, shell_http=shell_http)


def shell_call(guard: Breaker, command: str) -> MeasuredCall:
    return guard.measure(Call("bash", {"command": command}))


def test_a_shell_fetch_is_refused_and_leaves_no_trace() -> None:
    guard = guard_of()
    call = shell_call(guard, "curl https://x.org/a")
    for _ in range(30):
        decision = guard.guard(call)
        assert (decision.action, decision.withheld, decision.shell_http) == ("deny-shell-http", True, True)
        assert (decision.hits, decision.blocking, decision.advisory) == ((), (), None)
    assert guard.window_records == 0
    assert guard.next_count("host:x.org") == 1


def test_what_does_not_fetch_is_counted_as_ever() -> None:
    guard = guard_of()
    decision = guard.guard(shell_call(guard, "ls"))
    assert (decision.action, decision.shell_http) == ("allow", False)
    assert guard.window_records == 1


@pytest.mark.parametrize(
    "guard",
    [
        guard_of(shell_http=False),
        guard_of(blockShellHttp=False),
        guard_of("0.5.2"),
        guard_of(exclude=["bash"]),
    ],
    ids=["no fetch tool", "switched off", "older release", "untracked"],
)
def test_where_the_policy_is_not_engaged(guard: Breaker) -> None:
    assert guard.guard(shell_call(guard, "curl https://x.org")).action == "allow"


def test_only_shells_are_refused() -> None:
    guard = guard_of()
    for name in ("Bash", "web_fetch", "run"):
        call = Call(name, {"command": "curl https://x.org", "url": "https://x.org"})
        assert guard.guard(guard.measure(call)).action == "allow"
    assert guard.guard(guard.measure(Call("pwsh", {"command": "iwr https://x.org"}))).action == "deny-shell-http"


def test_the_machine_is_handed_to_the_guard() -> None:
    ruleset = RULESETS[NEWEST]
    guard = Breaker(ruleset=ruleset, shell_http=True, machine=this_machine(["devbox"]))
    call = shell_call(guard, "ssh devbox 'curl -s https://x.org'")
    assert guard.guard(call).action == "deny-shell-http"
    guard = Breaker(ruleset=ruleset, shell_http=True)
    assert guard.guard(call).action == "allow"


def hosts_reached(guard: Breaker) -> Ask:
    """Fetch one host with the fetch tool until the next call is asked about, and return that question."""
    for page in range(15):
        guard.guard(guard.measure(Call("web_fetch", {"url": f"https://x.org/{page}"})))
    ask = guard.ask(shell_call(guard, "curl https://x.org/15"))
    assert ask is not None
    return ask


def test_an_approval_overtaken_by_the_refusal_counts_as_declined() -> None:
    guard = guard_of()
    ask = hosts_reached(guard)
    assert [hit.measure for hit in ask.blocking] == ["host:x.org"]
    decision = guard.guard(shell_call(guard, "curl https://x.org/15"), ask)
    assert decision.action == "deny-shell-http"
    assert decision.blocking == ask.blocking
    assert guard.window_records == 16
    fetch = guard.measure(Call("web_fetch", {"url": "https://x.org/16"}))
    assert guard.ask(fetch) is None
    denied = guard.guard(fetch)
    assert (denied.action, denied.refused) == ("deny", True)
    guard.turn()
    assert guard.guard(fetch).action == "allow"


def test_without_the_policy_the_same_approval_holds() -> None:
    guard = guard_of(shell_http=False)
    ask = hosts_reached(guard)
    assert guard.guard(shell_call(guard, "curl https://x.org/15"), ask).action == "ask-approved"
    assert guard.guard(guard.measure(Call("web_fetch", {"url": "https://x.org/16"}))).action == "allow"


def test_a_refusal_is_asked_about_before_because_the_question_does_not_know_the_policy() -> None:
    guard = guard_of()
    hosts_reached(guard)
    assert guard.ask(shell_call(guard, "curl https://x.org/20")) is not None


def test_a_refusal_neither_lengthens_nor_clears_a_streak() -> None:
    guard = guard_of()
    for page in range(4):
        fetch = guard.measure(Call("web_fetch", {"url": f"https://x.org/{page}"}))
        guard.guard(fetch)
        guard.settle(fetch, Failure("http", "404"))
    guard.guard(shell_call(guard, "curl https://x.org/9"))
    assert guard.streak("host:x.org") == 4


def test_observation_tells_of_the_refusal_and_lets_the_call_pass() -> None:
    guard = guard_of()
    decision = guard.observe(shell_call(guard, "curl https://x.org"))
    assert (decision.action, decision.shell_http, decision.withheld) == ("observed", True, False)
    assert guard.window_records == 1
    assert guard.observe(shell_call(guard, "ls")).action == "allow"
