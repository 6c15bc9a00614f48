# Two commands need nothing but Python (>= 3.11) and make: `make demo` and `make test`.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slow bench lint clean

$(VENV)/.installed: pyproject.toml
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/.installed-dev: pyproject.toml
	$(if $(PYTHON),,$(error Python 3.11 or newer is needed))
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
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

# Ratios and rates, printed; no test asserts a time.
bench: $(VENV)/.installed-dev
	$(BIN)/python -m tests.bench.synth_rate
	$(BIN)/python -m tests.bench.replay_cost
	$(BIN)/python -m tests.bench.sweep_cost

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
