"""What agents do: each behaviour adds calls to a run and states by hand what a guard must see.

Every call's measures are written out from the parts the behaviour puts together (host, path, query, verb, stripped
command), never computed by the engine. Names end in `.example`, `.test` or `.invalid`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from analysis.synth.run import Approval, Call, Child, Hook, Nested, Run
from analysis.synth.truth import RULESETS, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analysis.synth.log import Json

OK: Final = Verdict("ok")
"""A success the harness states in structure."""

SHELL_OK: Final = Verdict("ok", evidence="rebuilt")
"""A shell's success: no end marker means exit code 0."""

UNTOLD: Final = Verdict("open", evidence="none")
NOT_RUN: Final = Verdict("not-run", evidence="none")
DENIED: Final = Verdict("denied", evidence="none")
UNDECIDABLE: Final = Verdict("undecidable", evidence="none")

_DECOYS: Final = frozenset(
    {"description", "timeoutMs", "run_in_background", "justification", "reason", "title", "comment"}
)
_FETCH_VERBS: Final = frozenset({"curl", "wget"})
_BEFORE_0_6: Final[tuple[str, ...]] = ("0.5.0", "0.5.1", "0.5.2", "0.5.3")
_WITH_WRITE_OUT_RULE: Final = ("0.5.3", "0.8")
_FIRST_STATUS_ERROR: Final = 400


@dataclass(frozen=True, slots=True)
class Target:
    """Name what a URL points at, in the parts a guard tells apart."""

    host: str
    path: str = "/"
    query: str = ""
    local: bool = False

    @property
    def measures(self) -> tuple[str, ...]:
        """Return the measures of the target, in order."""
        href = self.host + self.path + (f"?{self.query}" if self.query else "")
        numeric = self.host.replace(".", "").isdigit()
        site = self.host if numeric or ":" in self.host else ".".join(self.host.split(".")[-2:])
        return (f"net:{href}", f"site:{site}", *(() if self.local else (f"host:{self.host}",)))

    @property
    def url(self) -> str:
        """Return the URL in its usual spelling."""
        return f"https://{self.host}{self.path}" + (f"?{self.query}" if self.query else "")


def exact(tool: str, arguments: Mapping[str, object]) -> str:
    """Return the measure of a call's tool and arguments, decoys left out; keys and values must be plain ASCII."""
    kept = {key: value for key, value in arguments.items() if key not in _DECOYS}
    return f"exact:{tool}:{json.dumps(kept, sort_keys=True, separators=(',', ':'))}"


def shell_measures(
    command: str, verb: str, stripped: str, targets: Sequence[Target] = (), sink: str | None = None
) -> tuple[str, ...]:
    """Return the measures of a shell command from its stated parts."""
    found = [exact("bash", {"command": command}), f"verb:{verb}"]
    if verb in _FETCH_VERBS:
        found.append("family:http-fetch")
    found.append(f"cmd:{verb}:{stripped}")
    for target in targets:
        found.extend(target.measures)
    if sink is not None:
        found.append(f"sink:{sink}")
    return tuple(dict.fromkeys(found))


def bash(
    command: str,
    stripped: str | None = None,
    *,
    verb: str | None = None,
    targets: Sequence[Target] = (),
    sink: str | None = None,
    text: str = "(no output)",
    exit_code: int = 0,
    verdict: Verdict | None = None,
    verdicts: Mapping[str, Verdict] | None = None,
    measures_under: Mapping[str, tuple[str, ...]] | None = None,
    description: str = "Run a command",
    between: tuple[Hook | Approval | Nested | Child, ...] = (),
    duration: int = 400,
) -> Call:
    """Plan a shell call; what is not given is that of a command without options that ends as its exit code says."""
    first = verb or command.split(" ", 1)[0]
    told = SHELL_OK if exit_code == 0 else Verdict("failed", "exit", str(exit_code), "rebuilt")
    return Call(
        "bash",
        {"command": command, "description": description},
        shell_measures(command, first, command if stripped is None else stripped, targets, sink),
        verdict or told,
        text=text if exit_code == 0 else f"{text}\n[exit code: {exit_code}]",
        verdicts=verdicts or {},
        measures_under=measures_under or {},
        between=between,
        duration=duration,
    )


def curl(target: Target, *, text: str = "[]", verdict: Verdict | None = None) -> Call:
    """Plan a silent curl of one URL."""
    return bash(f"curl -s '{target.url}'", f"curl {target.url}", targets=(target,), text=text, verdict=verdict)


def tool(name: str, arguments: Mapping[str, object], text: str = "ok", *, meta: Json | None = None) -> Call:
    """Plan a successful call whose only measure is its arguments."""
    return Call(name, arguments, (exact(name, arguments),), OK, text=text, meta=meta, duration=40)


def read(path: str, text: str = "import sys\n") -> Call:
    """Plan a successful read of a file."""
    return tool("read", {"path": path}, text)


def edit(path: str, number: int) -> Call:
    """Plan a successful edit; the number keeps its arguments its own."""
    return tool("edit", {"path": path, "oldText": f"value = {number}", "newText": f"value = {number + 1}"}, "Edited.")


def file_error(name: str, arguments: Mapping[str, object], code: str = "FS_NOT_FOUND") -> Call:
    """Plan a call a file tool refuses with a typed error."""
    verdict = Verdict("failed", "error", code)
    text = f"Error: {code.lower().replace('_', ' ')}"
    return Call(
        name,
        arguments,
        (exact(name, arguments),),
        verdict,
        text=text,
        is_error=True,
        error=("FsError", code),
        duration=30,
    )


def web_fetch(target: Target, status: int = 200, body: str = "A page.") -> Call:
    """Plan a page fetched by the harness' own tool; an error status is a failure though the result is none."""
    arguments = {"url": target.url}
    failed = status >= _FIRST_STATUS_ERROR
    return Call(
        "web_fetch",
        arguments,
        (exact("web_fetch", arguments), *target.measures, "family:http-fetch"),
        Verdict("failed", "http", str(status)) if failed else OK,
        text=f"Fetched {target.url} (HTTP {status})\n\n{body}",
        meta={"url": target.url, "statusCode": status, "truncated": False},
        duration=700,
    )


def write_out_probe(target: Target, status: int, printed: str | None = None) -> Call:
    """Plan a curl that prints only the status; rulesets with the write-out rule call a leading 4xx or 5xx a failure."""
    command = f'curl -s -o /dev/null -w "%{{http_code}}" {target.url}'
    stripped = f"curl -o /dev/null -w %{{http_code}} {target.url}"
    text = str(status) if printed is None else printed
    if status < _FIRST_STATUS_ERROR or printed is not None:
        return bash(command, stripped, targets=(target,), text=text)
    return bash(
        command,
        stripped,
        targets=(target,),
        text=text,
        verdict=Verdict("failed", "http", str(status), "text"),
        verdicts={ruleset: SHELL_OK for ruleset in RULESETS if ruleset not in _WITH_WRITE_OUT_RULE},
    )


def traceback(command: str, exception: str, *, stripped: str | None = None) -> Call:
    """Plan a script that dies with a traceback while the shell reports success (its output was piped)."""
    text = f'Traceback (most recent call last):\n  File "probe.py", line 3, in <module>\n{exception}: no such thing'
    return bash(
        command,
        stripped,
        text=text,
        verdict=Verdict("failed", "exception", exception, "text"),
        verdicts={"0.5.0": SHELL_OK},
    )


# Behaviours


def ordinary_work(run: Run, rounds: int, *, failing: bool = True) -> None:
    """Work: read, search, edit, test; with `failing` every second round's test fails once and is mended."""
    for number in range(rounds):
        module = f"src/part_{number}.py"
        run.step(
            read(module), read(f"tests/test_part_{number}.py"), parallel=True, reasoning="I look at both sides first."
        )
        run.step(tool("grep", {"pattern": f"value_{number}", "path": "src"}, "src/part.py:3: value"))
        run.step(edit(module, number), text="I change the default.")
        test = f"pytest -q tests/test_part_{number}.py"
        if failing and number % 2:
            run.step(bash(test, text="E   assert 1 == 2\n1 failed in 0.12s", exit_code=1))
            run.step(edit(module, number + 100), reasoning="The old value is asserted in the test; I mend the code.")
        run.step(bash(test, text="3 passed in 0.11s"))


def host_grind(run: Run, queries: int = 18) -> None:
    """Search one host again and again with another query each time; it answers, but never with what is sought.

    Default settings: warning at the 7th call, summary demanded at the 11th, the 16th and later gated.
    """
    for number in range(queries):
        target = Target("search.example.org", "/v1/find", f"q=widget {number}")
        command = f"curl -s https://search.example.org/v1/find?q=widget+{number}"
        run.step(
            bash(command, command.replace(" -s", ""), targets=(target,), text='{"total":0,"hits":[]}'),
            reasoning="No hits. Another wording may find it.",
        )


def endpoint_guesser(run: Run) -> None:
    """Guess paths of an interface that does not exist, by three means that hide the failure each in its own way.

    `web_fetch` says 404 in its status, `curl -w` prints it, the script's traceback is piped away from its exit code.
    """
    for path in ("/v1/users", "/v2/users", "/api/users", "/users.json"):
        run.step(web_fetch(Target("api.example.net", path), 404, "Not found."), reasoning="Maybe the path is another.")
    for path in ("/v1/user", "/v1/people"):
        run.step(write_out_probe(Target("api.example.net", path), 404), text="I probe quickly.")
    for number in range(3):
        run.step(traceback(f"python3 probe.py --try {number} | tail -3", "KeyError"))


def failing_tests(run: Run, times: int = 9) -> None:
    """Edit and run the same failing test again and again; the edits never mend it.

    Default settings: failure warning at the 3rd failure, the 6th test run and later gated.
    """
    for number in range(times):
        run.step(edit("src/api.py", number), reasoning="This should do it.")
        run.step(bash("pytest -x tests/test_api.py", text="E   AssertionError\n1 failed in 0.31s", exit_code=1))


def alternate(run: Run, times: int = 8) -> None:
    """Read one file, then the other, then the first again: A, B, A, B.

    Default settings: a warning at the 7th reading of each.
    """
    for _ in range(times):
        run.step(read("docs/left.md", "See right.md.\n"))
        run.step(read("docs/right.md", "See left.md.\n"))


def same_step(run: Run) -> None:
    """Ask for the same file three times in one answer, and never again."""
    run.step(*(read("docs/plan.md", "Step one.\n") for _ in range(3)), parallel=True, reasoning="I read the plan.")


def page_sweep(run: Run, pages: int = 20) -> None:
    """Fetch the pages of one listing in order: honest work that looks like a grind to a host's count."""
    for page in range(1, pages + 1):
        target = Target("data.example.com", "/v1/items", f"page={page}")
        run.step(curl(target, text=json.dumps({"page": page, "items": [page * 10, page * 10 + 1]})))


def poll(run: Run, times: int = 13) -> None:
    """Ask a job and a local port for their state until they are ready; the same call every time."""
    for number in range(times):
        state = "completed, exit code: 0" if number == times - 1 else "running"
        run.step(tool("job_output", {"jobId": "bash-1"}, f"building\n[status: {state}]"))
    for _ in range(3):
        ready = Target("127.0.0.1", "/health", local=True)
        command = "curl -s http://127.0.0.1:3000/health"
        run.step(bash(command, "curl http://127.0.0.1:3000/health", targets=(ready,), text="ready"))


def parallel_batches(run: Run) -> None:
    """Ask for many things in one step: the guard meets all of a pool before the first of them has failed."""
    run.step(*(read(f"src/batch_{number}.py") for number in range(5)), parallel=True)
    guesses = [web_fetch(Target("docs.example.net", f"/guide/{number}"), 404, "Not found.") for number in range(6)]
    run.step(*guesses, parallel=True, reasoning="One of these must be it.")
    run.step(web_fetch(Target("docs.example.net", "/guide"), 404, "Not found."))
    run.step(web_fetch(Target("docs.example.com", "/guide"), 200, "The guide."))


def nested_code(run: Run) -> None:
    """Let a program make the calls: each nested call counts for the agent, whatever became of the outer one."""
    inner = (
        bash("ls src", text="api.py"),
        bash("cat src/missing.py", text="[stderr]\ncat: src/missing.py: No such file or directory", exit_code=1),
        read("src/api.py"),
    )
    outer = tool("run_code", {"code": "for path in paths: show(path)"}, "two of three shown")
    run.step(_with(outer, Nested(inner, together=2)))
    deep = _with(tool("run_code", {"code": "inner()"}, "done"), Nested((bash("date -u", text="Tue"),)))
    run.step(_with(tool("run_code", {"code": "outer()"}, "done"), Nested((deep, bash("uname -a", text="Linux")))))
    failing = Verdict("failed", "error", "CODE_RUN_FAILED")
    code = {"code": "raise SystemExit(3)"}
    run.step(
        Call(
            "run_code",
            code,
            (exact("run_code", code),),
            failing,
            text="Error: the program failed",
            is_error=True,
            error=("CodeRunFailedError", "CODE_RUN_FAILED"),
        )
    )


def _with(call: Call, *between: Hook | Approval | Nested | Child) -> Call:
    return replace(call, between=between)


def background_jobs(run: Run) -> None:
    """Start jobs in the background, one on purpose and one that outlived its foreground time, and read their ends."""
    run.step(
        replace(
            bash("make dev", text="started background job bash-1"),
            arguments={"command": "make dev", "run_in_background": True},
        )
    )
    run.step(
        bash(
            "make slow",
            text="compiling\n[still running after 30000ms; moved to background job bash-2]\nRead it with job_output.",
        )
    )
    run.step(tool("job_output", {"jobId": "bash-2"}, "compiling\n[status: failed, exit code: 2]"))
    run.say("Both are started.")
    run.notice(
        "background job bash-1 (bash: make dev) finished [status: completed, exit code: 0]. "
        "Read its output with job_output.",
        "tool-jobs",
        form="notice",
        summary="bash make dev [status: completed, exit code: 0]",
    )
    run.step(tool("job_output", {"jobId": "bash-1"}, "ready\n[status: completed, exit code: 0]"))
    run.say("The first job is done.")


def _refused(
    command: str,
    text: str,
    *between: Hook | Approval,
    detail: str = "",
    error: tuple[str, str] | None = None,
    met_guard: bool = False,
) -> Call:
    """Plan a shell call somebody refused: a failure, and unless its body had begun one the guard never met."""
    verdict = Verdict("failed", "error", detail)
    planned = bash(command, verdict=verdict, between=between, text=text)
    return replace(planned, is_error=True, error=error, met_guard=met_guard)


def denials(run: Run) -> None:
    """Be refused in every way there is: by hooks, by the operator, by nobody at the desk, by the automatic review."""
    run.step(_refused("rm -r build", "Error: deleting is off", Hook("PreToolUse", "block", "deleting is off")))
    run.step(_refused("rm -r dist", "Error: deleting is off", Hook("PreToolUse", "deny", "deleting is off")))
    run.step(
        _refused("rm -r cache", "Error: deleting needs a person", Hook("PreToolUse", "ask", "deleting needs a person"))
    )
    run.step(bash("make clean", between=(Hook("PreToolUse", "pass"), Hook("PostToolUse", "pass"))))
    blocked = bash("cat secrets.env", verdict=UNDECIDABLE, between=(Hook("PostToolUse", "block", "keep secrets out"),))
    run.step(replace(blocked, text="keep secrets out", is_error=True))
    outside = "bash wants to work outside the project"
    run.step(_refused("touch /etc/x", 'Error: the user rejected tool "bash"', Approval(outside, "rejected")))
    cancelled = 'Error: approval for tool "bash" was cancelled'
    run.step(_refused("touch /etc/y", cancelled, Approval(outside, "cancelled")))
    nobody = 'Error: tool "bash" requires approval, but no approval channel is available'
    run.step(_refused("touch /etc/z", nobody, Approval(outside, "unavailable", with_call_id=False)))
    run.step(bash("touch /tmp/x", between=(Approval(outside, "allowed-once"),)))
    run.step(
        _refused(
            "apt-get install jq",
            'Error: the user rejected escalating this command to "danger-full-access"',
            Approval("escalate sandbox to danger-full-access: jq is missing", "rejected"),
            met_guard=True,
        )
    )
    run.step(
        _refused(
            "git push --force",
            'Error: Auto review rejected tool "bash"; its body was not executed',
            detail="AUTO_REVIEW_DENIED",
            error=("AutoReviewDeniedError", "AUTO_REVIEW_DENIED"),
        )
    )


def odd_failures(run: Run) -> None:
    """Fail in the ways the harness itself ends a call: unknown tools, bad arguments, time limits, signals."""
    run.step(_typed("deploy", {"to": "staging"}, 'Error: unknown tool "deploy"', "ToolNotFoundError", "UNKNOWN_TOOL"))
    direct = {"path": "src"}
    routed = 'Error: unknown tool "glob": only run_code is callable directly; call glob through run_code'
    run.step(
        replace(
            _typed("glob", direct, routed, "ToolNotFoundError", "UNKNOWN_TOOL"),
            verdict=NOT_RUN,
        )
    )
    run.step(
        _typed("read", {"file": "x"}, "Error: invalid arguments: path is missing", "ToolArgsError", "INVALID_ARGS")
    )
    broken = '{"command": "make te'
    wrapped = (f"exact:bash:{json.dumps({'value': broken}, separators=(',', ':'))}",)
    invalid = Verdict("failed", "error", "INVALID_ARGS")
    run.step(
        Call(
            "bash",
            broken,
            wrapped,
            invalid,
            text="Error: invalid arguments: not an object",
            is_error=True,
            error=("ToolArgsError", "INVALID_ARGS"),
        )
    )
    run.step(
        _typed("grep", {"pattern": "("}, "Error: tool call timed out after 20000ms", "ToolTimeoutError", "TOOL_TIMEOUT")
    )
    run.step(file_error("edit", {"path": "a.py", "oldText": "x", "newText": "y"}, "FS_EDIT_NOT_FOUND"))
    run.step(
        bash(
            "sleep 900",
            text="(no output)\n[timed out after 30000ms]",
            verdict=Verdict("failed", "timeout", "30000ms", "rebuilt"),
        )
    )
    killed = Verdict("failed", "signal", "SIGKILL", "rebuilt")
    run.step(bash("./hungry", verb="hungry", text="allocating\n[killed by signal: SIGKILL]", verdict=killed))
    mode = "[sandbox: file access denied under read-only mode]"
    run.step(
        replace(
            bash("touch notes.txt", text="[stderr]\ntouch: notes.txt: not permitted", exit_code=1),
            text=f"[stderr]\ntouch: notes.txt: not permitted\n{mode}\n[exit code: 1]",
        )
    )
    quoted = "the log says [exit code: 0] here"
    run.step(bash("cat old.log && false", text=quoted, exit_code=1))
    run.step(
        bash(
            "cat failed.log",
            text="yesterday: [exit code: 2]\nthe end",
            verdict=Verdict("failed", "exit", "2", "text"),
        )
    )
    run.step(bash("printf x", text="one\u2028two\u0085three\ffour \U0001f600"))
    run.step(
        replace(tool("todo_write", {"todos": [{"content": "mend", "status": "pending"}]}, "Updated."), tracked=False)
    )


def _typed(name: str, arguments: Mapping[str, object], text: str, error_name: str, code: str) -> Call:
    """Plan a call that ends in one of the harness' typed errors."""
    verdict = Verdict("failed", "error", code)
    return Call(name, arguments, (exact(name, arguments),), verdict, text=text, is_error=True, error=(error_name, code))


def under_breaker(run: Run) -> None:
    """Work under a breaker whose host cap was 8: its notices, its asks (declined, granted, unanswered), its denials."""
    run.recorded_under_breaker = True
    ask = "repeat-tool-breaker: this call is about to be blocked as a repeat\nhost:ci.example.com 8/8"
    builds = [curl(Target("ci.example.com", f"/builds/{number}"), text="pending") for number in range(1, 20)]
    for number in range(7):
        if number == 5:  # the note follows the fifth call
            _breaker_notice(run, 5)
        run.step(builds[number])
    rejected = 'Error: the user rejected tool "bash"'
    run.step(_withheld(builds[7], rejected, Approval(ask, "rejected")))
    run.step(_withheld(builds[8], "Error: REPEAT_TOOL_BLOCKED: bash was not executed. host:ci.example.com 9/8"))
    run.step(_withheld(builds[9], "Error: SHELL_HTTP_BLOCKED: bash was not executed. Use web_fetch_file."))
    run.say("I am stopped.")
    run.human("Go on, I will allow it.")
    for number in range(7):
        run.step(builds[number])
    run.step(replace(builds[10], between=(Approval(ask, "allowed-once"),)))
    run.step(builds[11])
    run.say("Still pending.")
    run.human("Once more without me.")
    run.step(_withheld(builds[12], f"Error: {ask}"))


def _breaker_notice(run: Run, count: int) -> None:
    run.notice(
        f"CONVERGENCE_CHECK: host:ci.example.com was used {count} times.",
        "plugin:dsh-repeat-tool-breaker",
        form="notice",
        summary=f"host:ci.example.com × {count}",
    )


def _withheld(call: Call, text: str, *between: Approval) -> Call:
    """Turn a call into one its recording breaker withheld."""
    return replace(call, verdict=DENIED, text=text, is_error=True, between=between)


def under_reminder(run: Run) -> None:
    """Read one file seven times under the reminder: it speaks after the third and the fifth call and resets nothing."""
    for number in range(1, 6):
        run.step(read("notes.md", "kettle\n"))
        if number in (3, 5):
            text = f"The same call was made {number} times."
            run.notice(text, "repeat-tool-reminder", form="notice", summary=f"read × {number}")
    for _ in range(2):
        run.step(read("notes.md", "kettle\n"))


def aborted(run: Run) -> None:
    """Be cancelled by the person: one call was running, six of its pool had not begun."""
    running = web_fetch(Target("slow.example.com", "/report"))
    stopped = replace(
        running,
        verdict=Verdict("failed", "error", "ABORTED"),
        text="Error: tool call aborted",
        is_error=True,
        error=("AbortError", "ABORTED"),
        meta=None,
    )
    never = [
        replace(
            web_fetch(Target("slow.example.com", f"/report/{number}")),
            verdict=NOT_RUN,
            text="Error: tool call aborted before dispatch",
            is_error=True,
            error=("AbortError", "ABORTED_BEFORE_DISPATCH"),
            meta=None,
            duration=0,
        )
        for number in range(6)
    ]
    run.step(stopped, *never)
    run.end("aborted", reason={"kind": "user"})


def crashed(run: Run) -> None:
    """Stop in the middle: the process died while a call ran, and nobody opened the log again."""
    run.step(bash("make build", text="built"))
    run.cut_off(unanswered(bash("make deploy")))


def unanswered(call: Call) -> Call:
    """Plan a call that never gets a result of its own."""
    return replace(call, verdict=UNTOLD, result=False)


def lost(call: Call) -> Call:
    """Plan a call whose result row is in a part of the file that is torn away."""
    return replace(call, verdict=UNTOLD)


def crash_and_resume(run: Run) -> None:
    """Crash with one call running and one not begun, be opened again, and go on without a human word.

    Five reads before and four after the crash are two counts of their own: a new process remembers nothing.
    """
    for _ in range(5):
        run.step(read("state.json", "{}"))
    run.cut_off(unanswered(bash("make migrate")), not_started=("read",))
    run.resume()
    run.notice("The goal is not reached yet.", "goal")
    for _ in range(4):
        run.step(read("state.json", "{}"))
    run.say("The state is empty.")


def spiral(run: Run) -> None:
    """Think in shorter and shorter phrases while nothing new is tried."""
    calm = "The build needs the generated header, so I look for the rule that writes it."
    run.step(read("Makefile", "all:\n"), reasoning=calm, text="I read the build rules to see what is missing here.")
    for number in range(6):
        phrases = ("Wait.", "Maybe the path.", "No.", "Try again.", "Hmm, the header?", "Wait, no.")
        run.step(read(f"include/header_{number}.h", ""), reasoning="\n".join(phrases))


def text_rules(run: Run) -> None:
    """Meet words that look like failures: what they mean changed between the first releases.

    The first release read every tool's words, later ones only a shell's, and learned tracebacks and curl's own errors.
    """
    seen_by_first = {"0.5.0": Verdict("failed", "http", "404", "text")}
    run.step(replace(read("access.log", "GET /x (HTTP 404)\n"), verdicts=seen_by_first))
    page = web_fetch(Target("wiki.example.org", "/exit-codes"), body="A command that ends in [exit code: 2] failed.")
    run.step(replace(page, verdicts={"0.5.0": Verdict("failed", "exit", "2", "text")}))
    for number in range(4):
        run.step(traceback(f"python3 load.py {number} | tail -5", "ValueError"))
    host = Target("nowhere.invalid", "/")
    unresolved = bash(
        "curl -s https://nowhere.invalid/ | head -1",
        "curl https://nowhere.invalid/ | head -1",
        targets=(host,),
        text="curl: (6) Could not resolve host: nowhere.invalid",
        verdict=Verdict("failed", "curl", "6", "text"),
        verdicts={"0.5.0": SHELL_OK},
    )
    run.step(unresolved)
    run.step(
        bash(
            "wget https://files.example.org/a | cat",
            targets=(Target("files.example.org", "/a"),),
            text="wget: HTTP Error 503",
            verdict=Verdict("failed", "http", "503", "text"),
            verdicts={"0.5.0": SHELL_OK},
        )
    )


def write_out_probes(run: Run) -> None:
    """Ask curl for nothing but the status of each page: a failure only where a ruleset reads what is printed."""
    for path in ("/a", "/b", "/c", "/d"):
        run.step(write_out_probe(Target("shop.example.com", path), 404))
    run.step(write_out_probe(Target("shop.example.com", "/"), 200))
    run.step(write_out_probe(Target("shop.example.com", "/size"), 404, "4041 bytes"))


def odd_urls(run: Run) -> None:
    """Fetch addresses whose reading changed between releases: IPv6, escaped separators, ports in variables."""
    for number in range(8):
        address = f"http://[::1]:3000/health/{number}"
        command, stripped = f"curl -s {address}", f"curl {address}"
        now = Target("::1", f"/health/{number}", local=True)
        before = Target("[::1]", f"/health/{number}")
        told = shell_measures(command, "curl", stripped, (before,))
        run.step(bash(command, stripped, targets=(now,), text="up", measures_under=dict.fromkeys(_BEFORE_0_6, told)))
    for number in range(8):
        page = f"http://127.0.0.1:8080/list?page=1\\&size={number}"
        command, stripped = f"curl -s {page}", f"curl {page}".replace("\\", "")
        now = Target("127.0.0.1", "/list", f"page=1&size={number}", local=True)
        cut = shell_measures(command, "curl", stripped, (Target("127.0.0.1", "/list", "page=1", local=True),))
        run.step(bash(command, stripped, targets=(now,), text="[]", measures_under=dict.fromkeys(_BEFORE_0_6, cut)))
    for number in range(3):
        address = f"http://127.0.0.1:$PORT/ready/{number}"
        command, stripped = f"curl -s {address}", f"curl {address}"
        now = Target("127.0.0.1", f"/ready/{number}", local=True)
        unread = shell_measures(command, "curl", stripped)
        earlier: dict[str, tuple[str, ...]] = dict.fromkeys((*_BEFORE_0_6, "0.6.1"), unread)
        run.step(bash(command, stripped, targets=(now,), text="up", measures_under=earlier))


def check_again(run: Run, times: int) -> None:
    """Run one failing check whose long output is kept elsewhere: its end, and so its exit code, is still to be seen."""
    kept = "(Omitted 90210 bytes. Full formatted result stored at: spill/1. Read it in parts.)"
    for _ in range(times):
        check = bash("make check", text="first lines\n\nlast lines", exit_code=1)
        run.step(replace(check, text=f"{check.text}\n\n{kept}", clipped=True))


def repeated_ids(run: Run) -> None:
    """Work behind a gateway that numbers its calls from zero in every answer: only the source rows tell them apart."""
    run.call_id = "call_"
    for number in range(3):
        run.step(read(f"a_{number}.txt"), read(f"b_{number}.txt"), parallel=True)
        run.step(bash("make check", text="1 failed", exit_code=1))
    run.prune()
    run.compact("Three pairs of files were read; the check fails.")
    run.step(bash("make check", text="passed"))


def delegated(run: Run, label: str) -> None:
    """Do a subagent's share: eight queries of one host, counted in its own window."""
    for number in range(8):
        target = Target("papers.example.edu", "/search", f"n={number}")
        run.step(curl(target, text="[]"))
    run.say(f"{label}: nothing found.")


def delegate(run: Run, children: Sequence[tuple[Run, str]]) -> None:
    """Hand the same task to several subagents in one step."""
    calls: list[Call] = []
    for child, label in children:
        arguments = {"description": label, "prompt": "Search the papers."}
        planned = Call("subagent", arguments, (exact("subagent", arguments),), OK, text=f"{label}: nothing found.")
        calls.append(replace(planned, between=(Child(child, label),)))
    run.step(*calls, parallel=True)
