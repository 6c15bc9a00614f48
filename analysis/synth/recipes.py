"""The recipes: which sessions a corpus holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from analysis.synth import behaviours as act
from analysis.synth.chance import Chance
from analysis.synth.log import Header
from analysis.synth.run import Call, Run, new_run
from analysis.synth.scale import DEFAULT_SESSIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analysis.synth.log import Event
    from analysis.synth.truth import Label

EPOCH: Final = 1_767_225_600_000
"""The moment every corpus begins, in milliseconds: a fixed one, so that no clock enters a file."""

_HOUR: Final = 3_600_000
_TOOLS: Final = (
    "bash",
    "read",
    "edit",
    "write",
    "grep",
    "glob",
    "web_fetch",
    "run_code",
    "subagent",
    "job_output",
    "todo_write",
)
_PROJECTS: Final = ("/home/dev/shop", "/home/dev/atlas", "/srv/build/Ledger 2", "C:\\Users\\dev\\mobile")
_MODELS: Final = (
    ("deepseek-official", "deepseek-v4-flash"),
    ("deepseek-official", "deepseek-v4-pro"),
    ("example-gateway", "small-coder"),
)


@dataclass(slots=True)
class Corpus:
    """Collect the sessions of one recipe; the number of a session seeds what is drawn for it."""

    recipe: str
    seed: int
    sessions: int
    runs: list[Run] = field(default_factory=list[Run])
    best: Mapping[str, object] = field(default_factory=dict[str, object])

    def begin(
        self,
        name: str,
        summary: str,
        label: Label = "unknown",
        *,
        project: int = 0,
        model: int = 0,
        parent: Run | None = None,
        inherited: tuple[Event, ...] = (),
        subagent: bool = False,
    ) -> Run:
        """Begin a session and keep it."""
        chance = Chance(f"{self.seed}/{self.recipe}/{len(self.runs)}")
        created = EPOCH + len(self.runs) * _HOUR if parent is None else parent.now + 1
        header = Header(
            id=f"session-{chance.uuid()}",
            created_at=created,
            cwd=_PROJECTS[project],
            parent_session=None if parent is None else parent.log.header.id,
            is_seeded=bool(inherited),
            origin="subagent" if subagent else None,
            delegation_depth=int(subagent),
        )
        run = new_run(
            chance,
            header,
            name=name,
            summary=summary,
            label=label,
            model=_MODELS[model],
            tools=_TOOLS,
            inherited=inherited,
        )
        self.runs.append(run)
        return run


def demo(corpus: Corpus) -> None:
    """Plan every behaviour once, in small sessions over several projects and models."""
    run = corpus.begin("known-good", "ordinary work: reads, edits, tests that fail once and are mended", "good")
    run.human("Make the defaults configurable and keep the tests green.")
    act.ordinary_work(run, 4)
    run.say("The defaults can be set now; all tests pass.")
    run.title("Configurable defaults")
    run.human("Now the same for the limits.")
    act.ordinary_work(run, 2)
    run.say("Done.")

    run = corpus.begin("host-grind", "one search host asked 18 times with another query each", "stuck", project=1)
    run.human("Find the data set of widget sizes.")
    act.host_grind(run)
    run.say("I could not find it.")

    run = corpus.begin(
        "endpoint-guesser", "an interface that does not exist, guessed by three means", "stuck", project=1, model=1
    )
    run.human("Fetch the list of users from the service.")
    act.endpoint_guesser(run)
    run.say("The service does not answer.")

    run = corpus.begin("failing-tests", "the same test fails nine times between edits", "stuck", project=2, model=2)
    run.human("Make the api test pass.")
    act.failing_tests(run)
    run.say("The test still fails.")

    _demo_shapes(corpus)
    _demo_refusals(corpus)
    _demo_families(corpus)
    _demo_endings(corpus)
    _demo_rulesets(corpus)


def _simple(
    corpus: Corpus,
    name: str,
    summary: str,
    label: Label,
    ask: str,
    behaviour: Callable[[Run], None],
    answer: str = "Done.",
    *,
    project: int = 0,
    model: int = 0,
) -> Run:
    """Plan a session of one turn: a human word, one behaviour, an answer."""
    run = corpus.begin(name, summary, label, project=project, model=model)
    run.human(ask)
    behaviour(run)
    if answer:
        run.say(answer)
    return run


def _demo_shapes(corpus: Corpus) -> None:
    _simple(
        corpus,
        "a-b-a-b",
        "two files read in turn, eight times each",
        "stuck",
        "What does the left document say?",
        act.alternate,
        "It points to the right one.",
        model=1,
    )
    _simple(
        corpus,
        "page-sweep",
        "twenty pages of one listing fetched in order: honest work that looks like a grind",
        "good",
        "Collect all items.",
        act.page_sweep,
        "Forty items.",
        project=1,
    )
    _simple(
        corpus,
        "polling",
        "a job asked for its state thirteen times, then a local port",
        "unknown",
        "Tell me when the build is ready.",
        act.poll,
        "It is ready.",
        project=2,
    )
    _simple(
        corpus,
        "parallel-batches",
        "six pages that do not exist, asked for in one step: all meet the guard before one has failed",
        "unknown",
        "Find the guide.",
        act.parallel_batches,
        "Here is the guide.",
        project=2,
        model=1,
    )
    _simple(
        corpus,
        "run-code",
        "calls made by a program, one of them failed inside a successful outer call",
        "unknown",
        "Show me the sources.",
        act.nested_code,
        "Shown.",
        model=2,
    )
    _simple(
        corpus,
        "background-jobs",
        "jobs in the background; a notice of their end opens a turn that is no human's",
        "good",
        "Start the server and the slow build.",
        act.background_jobs,
        "",
        project=1,
    )
    _simple(
        corpus,
        "repeated-ids",
        "a gateway that numbers calls from zero in every answer, a pruned result and a compaction",
        "unknown",
        "Compare the files.",
        act.repeated_ids,
        "They agree.",
        project=3,
        model=2,
    )
    run = corpus.begin("steered", "two messages in a row open one turn; a third steers it and resets every count")
    run.human("Make the check pass.")
    run.human("Use the small data set.")
    act.check_again(run, 4)
    run.human("Stop, the data set was wrong. Now try again.")
    act.check_again(run, 2)
    run.say("It still fails.")
    _simple(
        corpus,
        "spiral",
        "reasoning that dissolves into short phrases",
        "stuck",
        "Mend the build.",
        act.spiral,
        "I do not know.",
        project=2,
        model=2,
    )


def _demo_refusals(corpus: Corpus) -> None:
    _simple(
        corpus,
        "denials",
        "refused by hooks, by the operator, by nobody at the desk and by the automatic review",
        "unknown",
        "Clean up and install jq.",
        act.denials,
        "I was not allowed to.",
        project=3,
    )
    _simple(
        corpus,
        "odd-failures",
        "failures the harness itself makes, and words that only look like one",
        "unknown",
        "Try everything.",
        act.odd_failures,
        "Tried.",
        project=3,
        model=1,
    )
    _simple(
        corpus,
        "under-breaker",
        "recorded under a breaker: its notice, its asks declined, granted and unanswered, its denials",
        "unknown",
        "Watch the builds.",
        act.under_breaker,
        "I am stopped again.",
        project=1,
        model=2,
    )
    _simple(
        corpus,
        "under-reminder",
        "recorded under the reminder: its notes after the third and fifth same call reset nothing",
        "unknown",
        "Watch the kettle.",
        act.under_reminder,
        "It does not boil.",
    )


def _demo_families(corpus: Corpus) -> None:
    parent = corpus.begin("fork-parent", "a session two others were forked from")
    parent.human("Look at the settings file.")
    for _ in range(6):
        parent.step(act.read("settings.toml"))
    parent.say("It has two sections.")
    first_turn = parent.log.events[-1]
    parent.human("List the tests.")
    parent.step(act.bash("ls tests", text="test_api.py"))
    open_call = parent.call_events[-1]
    parent.say("There is one.")

    child = corpus.begin(
        "fork-child",
        "forked after its parent's first turn: six inherited reads count in the parent only",
        parent=parent,
        inherited=parent.log.prefix(first_turn),
    )
    child.human("Read it again.")
    for _ in range(4):
        child.step(act.read("settings.toml"))
    child.say("Unchanged.")

    child = corpus.begin(
        "fork-open-call",
        "forked while a call of its parent was running: that call and its closer are not its own",
        parent=parent,
        inherited=parent.log.prefix(open_call),
    )
    child.close_fork(open_call)
    child.human("Never mind the tests; read the settings.")
    child.step(act.read("settings.toml"))
    child.say("It has two sections.")

    parent = corpus.begin("subagent-parent", "hands the same task to two subagents at once", project=1)
    parent.human("Search the papers, twice to be sure.")
    children: list[tuple[Run, str]] = []
    for number, label in enumerate(("First reader", "Second reader"), 1):
        child = corpus.begin(
            f"subagent-{number}",
            "a subagent's own log: eight queries of one host, counted in a window of its own",
            project=1,
            parent=parent,
            subagent=True,
        )
        child.human("Search the papers.")
        act.delegated(child, label)
        children.append((child, label))
    act.delegate(parent, children)
    parent.say("Neither found one.")

    run = corpus.begin("imported", "history imported from elsewhere: there is no parent, so all of it counts", model=2)
    run.still = True
    run.human("Read the plan.")
    for _ in range(6):
        run.step(act.read("plan.md", "1. begin\n"))
    run.say("It has one item.")
    run.seal_import()
    run.still = False
    run.human("Read it again.")
    run.step(act.read("plan.md", "1. begin\n"))
    run.say("Unchanged.")


def _demo_endings(corpus: Corpus) -> None:
    _simple(
        corpus,
        "resumed",
        "crashed, opened again and gone on without a human word: a new process remembers nothing",
        "unknown",
        "Migrate the state.",
        act.crash_and_resume,
        "",
        project=2,
    )
    _simple(
        corpus,
        "aborted",
        "cancelled by the person: one call stopped, six never begun",
        "unknown",
        "Fetch all reports.",
        act.aborted,
        "",
        project=3,
        model=1,
    )
    _simple(
        corpus, "crashed", "the log stops while a call runs", "unknown", "Build and deploy.", act.crashed, "", project=1
    )
    run = corpus.begin("torn", "the file ends in the middle of a write: the last result is lost", project=3, model=1)
    run.human("Build it.")
    run.step(act.bash("make lint", text="clean"))
    run.step(act.bash("make build", text="built"))
    run.cut_off(act.lost(act.bash("make test", text="12 passed")))
    run.torn = True

    run = corpus.begin("generations", "one session in two generations of its file: only the newer counts", project=3)
    run.human("Read the notes.")
    run.step(act.read("NOTES.md"))
    run.say("Short notes.")
    run.older_generation = run.log.copy()
    run.human("And the licence.")
    run.step(act.read("LICENSE"))
    run.say("A permissive one.")


def _demo_rulesets(corpus: Corpus) -> None:
    _simple(
        corpus,
        "text-rules",
        "words that look like failures, read otherwise by the first releases",
        "unknown",
        "Load the data.",
        act.text_rules,
        "It does not load.",
    )
    _simple(
        corpus,
        "write-out-probes",
        "curl asked for nothing but the status: a failure only where the printed number is read",
        "unknown",
        "Which pages exist?",
        act.write_out_probes,
        "Only the front page.",
        project=1,
        model=1,
    )
    _simple(
        corpus,
        "odd-urls",
        "IPv6 hosts, escaped separators and ports in variables, read otherwise by older releases",
        "unknown",
        "Is everything up?",
        act.odd_urls,
        "Everything is up.",
        project=2,
        model=1,
    )
    _simple(
        corpus,
        "same-step",
        "one answer asks for the same file three times over",
        "stuck",
        "What is the plan?",
        act.same_step,
        "Step one.",
    )


CALIBRATED_SESSIONS: Final = 107
"""The number of sessions the published failure figures were counted over."""

_CALIBRATED_CALLS: Final = 3083


def calibrated(corpus: Corpus) -> None:
    """Plan 107 sessions that show the published figures.

    3.6 % of the settled calls fail (111 of 3083: 67 exits with 1, 41 refusals of file tools, 3 pages not found, about
    the published proportions); the longest failure streak of one enabled measure reaches 2, 3, 4, 5 and 8 in 17, 9, 6,
    5 and 4 sessions, and 3 in none of the known-good ones. Under the default settings 26 sessions are warned of
    repetition and 10 reach a cap, as published for the chosen thresholds.
    """
    streaks = [("exit", length) for length in (8, 9, 10, 5, 3, 3, 2, 2, 2, 2, 2)]
    streaks += [("file", length) for length in (8, 4, 2, 2, 2)]
    streaks += [("page", 3)]
    single = ["exit"] * 19 + ["file"] * 23
    stuck_from, good_from = 8, 90
    plans = [_CalibratedPlan() for _ in range(CALIBRATED_SESSIONS)]
    for plan, streak in zip(plans, streaks, strict=False):
        plan.streak = streak
    for number, kind in enumerate(single):
        plans[20 + number * 2].singles.append(kind)
    for number in range(26):
        plans[20 + number].repeats = 17 if number < 10 else 8
    failing = sum(length for _, length in streaks) + len(single)
    fixed = sum(plan.repeats for plan in plans) + failing
    drawn = Chance(f"{corpus.seed}/calibrated/sizes")
    work = [drawn.integer(12, 36) for _ in plans]
    excess = sum(work) + fixed - _CALIBRATED_CALLS
    for number in range(abs(excess)):
        work[number % len(work)] -= 1 if excess > 0 else -1
    for number, (plan, calls) in enumerate(zip(plans, work, strict=True)):
        long = plan.streak is not None and plan.streak[1] >= stuck_from
        label: Label = "stuck" if long else "good" if number >= good_from or _short(plan.streak) else "unknown"
        _calibrated_session(corpus, number, plan, calls, label)


@dataclass(slots=True)
class _CalibratedPlan:
    """Hold what fails and repeats in one calibrated session."""

    streak: tuple[str, int] | None = None
    singles: list[str] = field(default_factory=list[str])
    repeats: int = 0


def _short(streak: tuple[str, int] | None) -> bool:
    """Tell whether a session of the calibrated corpus is a good one that failed twice in a row."""
    return streak == ("file", 2)


def _failure(kind: str, name: str) -> Call:
    if kind == "exit":
        return act.bash(f"make {name}", exit_code=1)
    if kind == "file":
        return act.file_error("read", {"path": f"{name}.txt"})
    return act.web_fetch(act.Target("docs.example.com", f"/{name}"), 404, "Not found.")


def _calibrated_session(corpus: Corpus, number: int, plan: _CalibratedPlan, calls: int, label: Label) -> None:
    summary = "a run of the calibrated corpus"
    if plan.streak is not None:
        summary += f", {plan.streak[1]} failures in a row"
    if plan.repeats:
        summary += f", one host asked {plan.repeats} times"
    run = corpus.begin(
        f"calibrated-{number}", summary, label, project=number % len(_PROJECTS), model=number % len(_MODELS)
    )
    run.human("Go through the parts.")
    early = calls // 2
    for part in range(early):
        run.step(_useful(part))
    for part, kind in enumerate(plan.singles):
        run.step(_failure(kind, f"single_{part}"))
    run.say("Half of it is done.")
    run.human("And the rest.")
    for page in range(plan.repeats):
        run.step(act.curl(act.Target("rows.example.org", "/v1/rows", f"page={page}"), text="[1]"))
    if plan.streak is not None:
        kind, length = plan.streak
        for turn in range(length):
            run.step(_failure(kind, f"goal_{turn}" if kind == "page" else "goal"))
    for part in range(early, calls):
        run.step(_useful(part))
    run.say("Done.")


def _useful(part: int) -> Call:
    """Plan one call of honest work, its own in every measure."""
    kinds = (
        act.read(f"src/part_{part}.py"),
        act.tool("grep", {"pattern": f"part_{part}", "path": "src"}),
        act.edit(f"src/part_{part}.py", part),
        act.bash(f"pytest -q tests/test_{part}.py", text="3 passed"),
    )
    return kinds[part % len(kinds)]


LABELLED_SESSIONS: Final = 40
_LABELLED_CYCLE: Final = ("good", "repeats", "good", "fails", "good")
_GOOD_REPEATS: Final = (8, 3, 6, 1, 7)
_GOOD_FAILURES: Final = (2, 0, 1)
_STUCK_REPEATS: Final = (11, 14, 12, 20)
_STUCK_FAILURES: Final = (6, 8, 7)


def labelled(corpus: Corpus) -> None:
    """Plan good and stuck runs that a known range of thresholds separates.

    Good runs repeat a measure up to 8 times and fail at most twice in a row. Stuck runs repeat one at least 11 times
    without a failure, or fail at least six times in a row with at most 8 repeats. So warning at 9, 10 or 11 together
    with a failure warning at 3 to 6 touches every stuck run and no good one; caps of 9 to 11 for every kind together
    with a failure limit of 2 to 5 gate every stuck run and no good one.
    """
    counts = {"good": 0, "repeats": 0, "fails": 0}
    for number in range(corpus.sessions):
        kind = _LABELLED_CYCLE[number % len(_LABELLED_CYCLE)]
        nth = counts[kind]
        counts[kind] += 1
        repeats, failures = _labelled_numbers(kind, nth)
        label: Label = "good" if kind == "good" else "stuck"
        summary = f"a {label} run: {repeats} repeats of one measure, {failures} failures in a row"
        run = corpus.begin(
            f"{label}-{number}", summary, label, project=number % len(_PROJECTS), model=number % len(_MODELS)
        )
        run.human("Find the rows and make the check pass.")
        for part in range(run.chance.integer(4, 12)):
            run.step(_useful(part))
        run.say("Prepared.")
        run.human("Go on.")
        on_host = nth % 2 == 0
        for again in range(repeats):
            target = act.Target("rows.example.org", "/v1/rows", f"page={again}")
            run.step(act.curl(target) if on_host else act.read("state.json", "{}"))
        for _ in range(failures):
            run.step(act.bash("make check", exit_code=1))
        run.say("That is all.")
    corpus.best = {
        "touch": {"warnAt": [9, 11], "failWarnAt": [3, 6]},
        "gate": {"limits": [9, 11], "failLimit": [2, 5]},
        "stuck": counts["repeats"] + counts["fails"],
        "good": counts["good"],
    }


def _labelled_numbers(kind: str, nth: int) -> tuple[int, int]:
    """Return how often the nth run of a kind repeats a measure and fails in a row; the first are the extremes."""
    if kind == "repeats":
        return _STUCK_REPEATS[nth % len(_STUCK_REPEATS)], 0
    if kind == "fails":
        return 0, _STUCK_FAILURES[nth % len(_STUCK_FAILURES)]
    return _GOOD_REPEATS[nth % len(_GOOD_REPEATS)], _GOOD_FAILURES[nth % len(_GOOD_FAILURES)]


def _scale(corpus: Corpus) -> None:
    """Stand for the recipe whose sessions are written, not planned one by one."""
    del corpus


@dataclass(frozen=True, slots=True)
class Recipe:
    """Name a recipe, what it is for, how it is planned and how many sessions it has.

    `fixed` recipes have always the same number of sessions; others at least `fewest`, and `usual` when none is asked.
    """

    name: str
    summary: str
    plan: Callable[[Corpus], None]
    usual: int
    fewest: int = 1
    fixed: bool = False


DEMO_SESSIONS: Final = 33

RECIPES: Final[Mapping[str, Recipe]] = MappingProxyType(
    {
        recipe.name: recipe
        for recipe in (
            Recipe("demo", "every behaviour once, in small sessions", demo, DEMO_SESSIONS, fixed=True),
            Recipe("calibrated", "the published failure figures", calibrated, CALIBRATED_SESSIONS, fixed=True),
            Recipe(
                "labelled", "good and stuck runs with a known best threshold", labelled, LABELLED_SESSIONS, fewest=5
            ),
            Recipe("scale", "any number and size, quick to write", _scale, DEFAULT_SESSIONS),
        )
    }
)
"""The recipes by name."""
