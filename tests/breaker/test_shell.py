from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaker.ecmascript import WHITESPACE, join_surrogates
from breaker.shell import first_verb, output_sink, stripped_command, tokenize

MEGABYTE = 1_000_000

SHELL_TEXT = st.text(st.sampled_from("ab-/|>;'\"\\ \n\t\u00a0\ufeff\x85\x1c\ud83d\ude00é"), max_size=40)


# -- words ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "tokens"),
    [
        ("", []),
        ("   \n\t", []),
        ("a b\nc", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("a'b'\"c\"d", ["abcd"]),
        ("'' \"\" x", ["", "", "x"]),
        (r"a\ b \'c\"", ["a b", "'c\""]),
        ("a\\\nb", ["a\nb"]),
        ("a\\", ["a\\"]),
        ("\\", ["\\"]),
        (r"'a\'b", ["a\\b"]),
        (r'"a\nb\"c\\d"', ['anb"c\\d']),
        ('"a\\', ["a\\"]),
        ("'open to the end ", ["open to the end "]),
        ('"open to the end ', ["open to the end "]),
        ("a|b;c >f 2>&1", ["a|b;c", ">f", "2>&1"]),
        ("# $x `y` (z)", ["#", "$x", "`y`", "(z)"]),
        ("a\u00a0b\ufeffc\u2028d", ["a", "b", "c", "d"]),
        ("a\x1cb\x85c", ["a\x1cb\x85c"]),
        ("\ud83d''\ude00", ["\U0001f600"]),
    ],
)
def test_words_of_examples(command: str, tokens: list[str]) -> None:
    assert tokenize(command) == tokens


def scanned(command: str) -> list[str]:
    """Split a command character by character, straight from the rules."""
    tokens: list[str] = []
    token = ""
    started = False
    quote = ""
    position = 0
    while position < len(command):
        character = command[position]
        following = command[position + 1 : position + 2]
        position += 1
        if quote == "'":
            if character == "'":
                quote = ""
            else:
                token += character
        elif quote:
            if character == '"':
                quote = ""
            elif character == "\\" and following:
                token += following
                position += 1
            else:
                token += character
        elif character in "'\"":
            quote = character
            started = True
        elif character == "\\" and following:
            token += following
            started = True
            position += 1
        elif character in WHITESPACE:
            if started:
                tokens.append(join_surrogates(token))
            token, started = "", False
        else:
            token += character
            started = True
    return [*tokens, join_surrogates(token)] if started else tokens


@given(SHELL_TEXT)
def test_words_are_what_a_scan_of_the_rules_finds(command: str) -> None:
    assert tokenize(command) == scanned(command)


@given(st.text().filter(lambda text: not set(text) & set("'\"\\")))
def test_without_quotes_nothing_but_white_space_is_lost(command: str) -> None:
    assert "".join(tokenize(command)) == "".join(character for character in command if character not in WHITESPACE)


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="'"))))
def test_single_quoted_words_come_back_whole(words: list[str]) -> None:
    assert tokenize(" ".join(f"'{word}'" for word in words)) == words


@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("'" * MEGABYTE, 1),
        ('"' * MEGABYTE, 1),
        ('"' + "\\" * MEGABYTE, 1),
        ("\\" * MEGABYTE, 1),
        ("'\"" * (MEGABYTE // 2), 1),
        ('"\'" ' * (MEGABYTE // 4), MEGABYTE // 4),
        ("a " * (MEGABYTE // 2), MEGABYTE // 2),
        (" " * MEGABYTE, 0),
    ],
    ids=["single", "double", "open-backslashes", "backslashes", "mixed", "quoted-quotes", "words", "blanks"],
)
def test_a_megabyte_of_anything_is_read(command: str, count: int) -> None:
    assert len(tokenize(command)) == count


# -- the verb ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "verb"),
    [
        ("ls -la", "ls"),
        ("/usr/bin/CURL x", "curl"),
        (r"'C:\tools\Curl' x", "curl"),
        ("A=1 b_2= curl", "curl"),
        ("1A=1 curl", "1a=1"),
        ("FOO=bar", ""),
        ("", ""),
        ('"" foo', ""),
        ("/usr/bin/", ""),
        ("exec", ""),
        ("timeout 5 curl", "curl"),
        ("timeout 5.5m curl", "curl"),
        ("timeout --foreground --signal=9 30s curl", "curl"),
        ("timeout -k 5 10 curl", "-k"),
        ("timeout curl", "curl"),
        ("timeout '5\n' curl", "5\n"),
        ("timeout 5 timeout 6 A=1 curl", "curl"),
        ("sudo curl", "curl"),
        ("sudo -u root -E env A=1 curl", "curl"),
        ("sudo -E -u root curl", "root"),
        ("nice -n 10 nohup time command curl", "curl"),
        ("/usr/bin/env curl", "env"),
        ("Sudo curl", "sudo"),
        ("sudo -u", ""),
        ("cd /x && curl y", "cd"),
        ("bash -c 'curl x'", "bash"),
        ("for u in x; do :; done", "for"),
        ("'ΑΣ'", "ας"),
        ("İ", "i̇"),
        ("'a b/c d'", "c d"),
    ],
)
def test_verbs_of_examples(command: str, verb: str) -> None:
    assert first_verb(tokenize(command)) == verb


# -- the stripped command ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "stripped"),
    [
        ("curl -m5 -A1 --max-time=3 --retry 2 -fsSLk -sS -o x https://a.com", "curl -o x https://a.com"),
        ("curl -so x https://a.com", "curl -so x https://a.com"),
        ("curl -fsx x", "curl -fsx x"),
        ("curl -s -S -f -L -k -K x", "curl -K x"),
        ("git commit -m 'first'", "git commit"),
        ("git commit -m second", "git commit"),
        ("git add -A .", "git add"),
        ("python -m pytest tests/a", "python tests/a"),
        ("tail -f x", "tail x"),
        ("timeout -k 5 10 curl URL", "5 10 curl URL"),
        ("timeout 10 curl URL", "curl URL"),
        ("A=1 B=2 curl URL", "curl URL"),
        ("sudo A=1 curl URL", "sudo A=1 curl URL"),
        ("curl --silent --show-error --fail --location --insecure --compressed --no-progress-meter u", "curl u"),
        ("curl --silent=1 u", "curl --silent=1 u"),
        ("curl --user-agent 'x y' --connect-timeout 3 u", "curl u"),
        ("curl --user-agent='x y' --Max-Time=3 u", "curl --Max-Time=3 u"),
        ("curl -m u", "curl"),
        ("curl -m", "curl"),
        ("curl -mx -Ab u", "curl -mx -Ab u"),
        ("curl -m٣ u", "curl -m٣ u"),
        ("curl - -- u", "curl - -- u"),
        ("  a   b  ", "a b"),
        ("'' a", "a"),
        ("ls # hi", "ls # hi"),
        ("cat <<EOF > x\nfoo bar\nEOF", "cat <<EOF > x foo bar EOF"),
        ("FOO=bar", ""),
    ],
)
def test_stripped_commands_of_examples(command: str, stripped: str) -> None:
    assert stripped_command(tokenize(command)) == stripped


# -- the sink ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "sink"),
    [
        ("ls", None),
        ("curl -o out.bin u", "out.bin"),
        ("curl --output ./././out u", "out"),
        ("curl --output=out u", "out"),
        ("wget --output-document out u", "out"),
        ("wget -O out u", "out"),
        ("wget -O HTTPS://a.com > x", "x"),
        ("curl -o https://a.com", "https://a.com"),
        ("curl -o -s u > y", "y"),
        ("curl -o", None),
        ("curl -so x u", None),
        ("a > b", "b"),
        ("a >> b", "b"),
        ("a >b >c", "b"),
        ("a >>b", "b"),
        ("a >>>b", ">b"),
        ("a > | b > c", "c"),
        ("a >", None),
        ("x >| f", "|"),
        ("echo err >&2", "&2"),
        ("a 2>x 1>&2 &>y", None),
        ("echo '>foo'", "foo"),
        ("grep -o foo f", "foo"),
        ("ssh -o Opt=x h", "Opt=x"),
        ("a | tee out", "out"),
        ("a | tee -a b c", "c"),
        ("a | tee -a | b > d", "d"),
        ("tee out.txt|wc", "out.txt|wc"),
        ("a | tee b ; c > d", "b"),
        ("curl -o /dev/null U > out.txt", None),
        ("a > /dev/stderr", None),
        ("a > -", None),
        ("a > ./", None),
        ("a > .//dev/null", None),
        ("a > '\"q\"'", "q"),
        ("a > '\"'", None),
        ("a > ' x '", "x"),
        ("curl --output= u > f", None),
    ],
)
def test_sinks_of_examples(command: str, sink: str | None) -> None:
    assert output_sink(tokenize(command)) == sink


@pytest.mark.parametrize(
    ("command", "sink"),
    [
        ("a > " + "./" * (MEGABYTE // 2) + "x", "x"),
        ("tee | " * (MEGABYTE // 6), None),
        ("tee " + "-a " * (MEGABYTE // 3), None),
        ("-o " * (MEGABYTE // 3), None),
    ],
    ids=["dots", "tees", "options", "flags"],
)
def test_a_megabyte_is_searched_for_its_sink(command: str, sink: str | None) -> None:
    assert output_sink(tokenize(command)) == sink


def test_a_megabyte_of_options_is_stripped() -> None:
    assert stripped_command(tokenize("curl" + " -s -m 5 --retry=1" * 50_000)) == "curl"
    assert first_verb(tokenize("sudo -u x -E " * 80_000 + "ls")) == "ls"
