"""Change the engine's source in one place at a time and see whether a test notices.

    python -m tests.mutation.mutate breaker/window.py breaker/engine.py --report mutants.json

Each change is tried in a fork of this process, which runs the tests of the engine's room until the first fails. A
change that no test notices has survived: either a test is missing or the change makes no difference.
"""

from __future__ import annotations

import argparse
import ast
import copy
import importlib.abc
import importlib.util
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib.machinery import ModuleSpec
from pathlib import Path
from random import Random
from types import ModuleType

import hypothesis
import msgspec
import pytest

__all__ = ["Mutant", "Result", "main", "mutants_of", "survives", "unchanged"]

ROOT = Path(__file__).parents[2]
TESTS = {
    "engine": ("test_engine", "test_engine_edges", "test_engine_reference", "test_messages", "test_vectors"),
    "window": ("test_window", "test_engine", "test_engine_reference"),
    "failure": ("test_failure", "test_failure_edges", "test_messages", "test_vectors"),
    "measures": ("test_measures", "test_rulesets", "test_engine", "test_engine_edges", "test_vectors"),
}
"""Which tests look at a module, the quickest to notice first."""
PATIENCE = 60
"""Seconds of processor time after which a change counts as noticed: the tests hang."""
SURVIVED = 0

EXPLAINED = {
    "breaker.engine: statement: self._looked_at = call -> pass": "only saves looking caps up again",
    "breaker.engine: constant: '' -> '~'": "the command of a tool that is no shell is never read",
    "breaker.engine: constant: 0 -> 1": "no streak is below `failLimit`, which is 2 at least",
    "breaker.failure: constant: '' -> '~'": "a command without curl asks for nothing, whatever it is",
    "breaker.failure: comparison: end >= 0 -> end > 0": "a bracket that closes never stands first",
    "breaker.failure: constant: 0 -> 1": "a bracket that closes never stands first",
    "breaker.failure: constant: 1 -> 2": "any number below 0 says that there is none",
    "breaker.failure: constant: '-0' -> '-0~'": "a number holds no tilde",
    "breaker.failure: and/or: not any((variable in command": "only saves taking the command apart",
    "breaker.failure: comparison: variable in command": "only saves taking the command apart",
}
"""Changes that make no difference: how they begin, and why. What survives besides is a test that is missing."""

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    """One change of a module."""

    module: str
    line: int
    what: str
    tree: ast.Module


@dataclass
class Result:
    """What became of the changes of a run."""

    tried: dict[str, int] = field(default_factory=dict[str, int])
    killed: dict[str, int] = field(default_factory=dict[str, int])
    survivors: list[str] = field(default_factory=list[str])
    explained: list[str] = field(default_factory=list[str])
    seconds: float = 0.0

    def add(self, mutant: Mutant, *, survived: bool) -> None:
        """Take note of one change."""
        self.tried[mutant.module] = self.tried.get(mutant.module, 0) + 1
        self.killed[mutant.module] = self.killed.get(mutant.module, 0) + (not survived)
        if survived:
            told = f"{mutant.module}:{mutant.line}: {mutant.what}"
            known = f"{mutant.module}: {mutant.what}".startswith(tuple(EXPLAINED))
            (self.explained if known else self.survivors).append(told)


# Changes


Change = Callable[[ast.AST], None]


@dataclass(frozen=True)
class _Place:
    node: ast.AST
    what: str
    change: Change


def unchanged(path: Path) -> Mutant:
    """Return a module as it is: that one must survive, or survival says nothing."""
    return Mutant(_module(path), 0, "unchanged", ast.parse(path.read_text(encoding="utf-8")))


def _module(path: Path) -> str:
    return ".".join(path.resolve().relative_to(ROOT).with_suffix("").parts)


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Give every change of a module."""
    module = _module(path)
    tree = ast.parse(path.read_text(encoding="utf-8"))
    count = sum(1 for _ in _places(tree))
    for number in range(count):
        changed = copy.deepcopy(tree)
        place = list(_places(changed))[number]
        line = getattr(place.node, "lineno", 0)
        before = _source(place.node)
        place.change(place.node)
        after = _source(place.node)
        yield Mutant(module, line, f"{place.what}: {before} -> {after}", ast.fix_missing_locations(changed))


def _source(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 90 else text[:60] + " … " + text[-27:]


def _places(tree: ast.Module) -> Iterator[_Place]:
    left_out = _left_out(tree)
    for node in ast.walk(tree):
        if id(node) not in left_out:
            yield from _changes(node)


def _left_out(tree: ast.Module) -> set[int]:
    """Return the nodes that say nothing at run time: docstrings, annotations, names exported, types."""
    roots: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            roots.append(node)
        elif isinstance(node, ast.AnnAssign | ast.arg):
            roots += [node.annotation] if node.annotation is not None else []
        elif isinstance(node, ast.FunctionDef):
            roots += node.decorator_list + ([node.returns] if node.returns is not None else [])
        elif isinstance(node, ast.ClassDef):
            roots += node.decorator_list
        elif isinstance(node, ast.Assign) and (_is_export(node) or _is_type(node.value)):
            roots.append(node)
        elif isinstance(node, ast.Call) and _name(node.func) == "cast":
            roots.append(node.args[0])
        elif isinstance(node, ast.Call) and _name(node.func) == "field":
            roots.append(node)
    return {id(inner) for root in roots for inner in ast.walk(root)}


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_export(node: ast.Assign) -> bool:
    return any(_name(target) in {"__all__", "__slots__"} for target in node.targets)


def _is_type(node: ast.AST) -> bool:
    return isinstance(node, ast.Subscript) and _name(node.value) in {"Literal", "TypeAlias"}


def _changes(node: ast.AST) -> Iterator[_Place]:
    if isinstance(node, ast.Compare):
        for index, operator in enumerate(node.ops):
            other = _COMPARISONS[type(operator)]
            yield _Place(node, "comparison", _set_operator(index, other))
    elif isinstance(node, ast.BoolOp):
        yield _Place(node, "and/or", _swap_bool)
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in _OPERATORS:
        yield _Place(node, "operator", _swap_operator)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float | str):
        yield _Place(node, "constant", _change_constant)
    elif isinstance(node, ast.Return) and not (node.value is None or _is_none(node.value)):
        yield _Place(node, "return", _return_nothing)
    elif isinstance(node, ast.Continue):
        yield _Place(node, "continue", _become(ast.Pass()))
    elif isinstance(node, ast.comprehension) and node.ifs:
        yield _Place(node, "filter", _drop_filters)
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        yield _Place(node.test, "condition", _negate(node))
    if isinstance(node, ast.Expr | ast.AugAssign) or (
        isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript)
    ):
        yield _Place(node, "statement", _become(ast.Pass()))


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _set_operator(index: int, operator: type[ast.cmpop]) -> Change:
    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.Compare)
        node.ops[index] = operator()

    return change


def _swap_bool(node: ast.AST) -> None:
    assert isinstance(node, ast.BoolOp)
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _swap_operator(node: ast.AST) -> None:
    assert isinstance(node, ast.BinOp | ast.AugAssign)
    node.op = _OPERATORS[type(node.op)]()


def _change_constant(node: ast.AST) -> None:
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, bool):
        node.value = not value
    elif isinstance(value, int | float):
        node.value = value + 1
    elif isinstance(value, str):
        node.value = f"{value}~"


def _return_nothing(node: ast.AST) -> None:
    assert isinstance(node, ast.Return)
    node.value = None


def _drop_filters(node: ast.AST) -> None:
    assert isinstance(node, ast.comprehension)
    node.ifs = []


def _negate(owner: ast.If | ast.While | ast.IfExp) -> Change:
    def change(node: ast.AST) -> None:
        owner.test = ast.UnaryOp(op=ast.Not(), operand=owner.test)

    return change


def _become(other: ast.stmt) -> Change:
    def change(node: ast.AST) -> None:
        node.__class__ = type(other)
        vars(node).update({"value": None, "lineno": getattr(node, "lineno", 1), "col_offset": 0})

    return change


# Trying one


class _Loader(importlib.abc.Loader):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        code = compile(self._mutant.tree, f"<{self._mutant.module} changed>", "exec")
        exec(code, vars(module))


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant

    def find_spec(self, fullname: str, path: object, target: object = None) -> ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        return importlib.util.spec_from_loader(fullname, _Loader(self._mutant))


def survives(mutant: Mutant, *, shared: bool) -> bool:
    """Tell whether no test notices the change."""
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (PATIENCE, PATIENCE))
        os._exit(_try(mutant, shared=shared))
    _, status = os.waitpid(child, 0)
    return os.WIFEXITED(status) and os.WEXITSTATUS(status) == SURVIVED


def _try(mutant: Mutant, *, shared: bool) -> int:
    sys.meta_path.insert(0, _Finder(mutant))
    room = ROOT / "tests" / "breaker"
    files = [str(room / f"{name}.py") for name in TESTS[mutant.module.rpartition(".")[2]]]
    marks = "not slow" if shared else "not slow and not shared"
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    # This process has imported hypothesis already; pytest would count that as a fault.
    early = "ignore::pytest.PytestAssertRewriteWarning"
    arguments = ["-x", "-q", "-W", early, "-p", "no:cacheprovider", "-m", marks, "--rootdir", str(ROOT), *files]
    return int(pytest.main(arguments))


def _load_profile() -> None:
    """Look for one failing example only; to make it small takes longer than to find it."""
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile(
        "mutation",
        database=None,
        phases=phases,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    hypothesis.settings.load_profile("mutation")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run as told on the command line."""
    parser = argparse.ArgumentParser(description="Change the engine in one place at a time.")
    parser.add_argument("files", nargs="*", type=Path, help="Modules; all that have tests named for them if none.")
    parser.add_argument("--sample", type=int, help="Try only so many changes of each module.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shared", action="store_true", help="Run the tests of recorded answers too.")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args(arguments)
    _load_profile()
    result = Result()
    begun = time.monotonic()
    for path in options.files or [ROOT / "breaker" / f"{name}.py" for name in TESTS]:
        if not survives(unchanged(path), shared=options.shared):
            print(f"{path}: the tests fail without any change", file=sys.stderr)
            return 1
        mutants = list(mutants_of(path))
        if options.sample is not None and options.sample < len(mutants):
            mutants = Random(options.seed).sample(mutants, options.sample)
        for mutant in mutants:
            survived = survives(mutant, shared=options.shared)
            result.add(mutant, survived=survived)
            result.seconds = time.monotonic() - begun
            if survived:
                print(f"{path.name}:{mutant.line}: {mutant.what}", flush=True)
            if options.report is not None:
                options.report.write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1))
    for module, tried in result.tried.items():
        print(f"{module}: {result.killed[module]} of {tried} changes noticed")
    print(f"{len(result.explained)} of the others make no difference, {len(result.survivors)} need a test")
    return 1 if result.survivors else 0


if __name__ == "__main__":
    sys.exit(main())
