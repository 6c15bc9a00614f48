# Two commands need nothing but Python (>= 3.11) and make: `make demo` and `make test`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# As for any installed package: it starts quickly from the first run, and where Python is told to write no bytecode.
COMPILE = $(BIN)/python -m compileall -q breaker analysis cli breaker_pytest

.PHONY: demo test test-slow bench lint clean

$(VENV)/.installed: pyproject.toml
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	$(COMPILE)
	touch $@

$(VENV)/.installed-dev: pyproject.toml
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	$(COMPILE)
	touch $@ $(VENV)/.installed

# The main job, on a corpus of every behaviour that the tool writes itself.
demo: $(VENV)/.installed
	$(BIN)/breaker demo

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/basedpyright

test: $(VENV)/.installed-dev lint
	$(BIN)/python -m pytest -n auto -m 'not slow'

test-slow: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m slow

# What it costs, as Markdown tables, in about a quarter of an hour; no test asserts a time. tests/bench/RESULTS.md keeps
# those of a day. To be run on a machine that does nothing else.
BENCHES := machine startup_cost synth_rate replay_cost sweep_cost export_cost cache_cost growth_inputs
bench: $(VENV)/.installed-dev
	@for bench in $(BENCHES); do $(BIN)/python -m tests.bench.$$bench || exit 1; done

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
