# Every target makes its own virtual environment (.venv) and installs what it needs. Byte code is written whatever the
# environment says: without it every process that a test or a benchmark starts would take a second longer.
export PYTHONDONTWRITEBYTECODE :=
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
RUNTIME := $(VENV)/.installed-runtime
INSTALL := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check $(if $(CI),--constraint constraints.txt)
OLDEST := $(VENV)-oldest/.installed
CORE := tests/agents tests/delays tests/kernels tests/util tests/runner/test_simulation.py tests/runner/test_store.py

.DEFAULT_GOAL := help
.PHONY: help paper systems lemmas exploration trials tune keep test check test-slow promises test-oldest dist-test attack lint bench generate gallery docs clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

$(RUNTIME): pyproject.toml studies/pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("belated needs Python 3.11 or newer, this is " + sys.version) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable . --editable ./studies
	touch $(RUNTIME)

$(STAMP): $(RUNTIME)
	$(INSTALL) --editable '.[dev]' --editable './studies[exploration]'
	touch $(STAMP)

$(OLDEST): pyproject.toml tools/versions.py
	test -x $(VENV)-oldest/bin/python || $(PYTHON) -m venv $(VENV)-oldest
	$(PYTHON) tools/versions.py oldest > $(VENV)-oldest/oldest.txt
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(VENV)-oldest/oldest.txt \
	  --editable '.[plots,data]' gymnasium hypothesis pytest pytest-xdist
	touch $(OLDEST)

paper: $(RUNTIME)  ## regenerate the paper's figures and tables in full (FULL=1: and the studies around them)
	$(BIN)/belated paper $(if $(FULL),--full)

systems: $(RUNTIME)  ## compare every system on common testbeds (FULL=1: all seeds and episodes)
	$(BIN)/belated systems $(if $(FULL),--full)

lemmas: $(RUNTIME)  ## check what the paper's lemmas and theorems claim
	$(BIN)/belated lemmas

exploration: $(RUNTIME)  ## compare the untuned agent on problems that have to be explored (FULL=1: all seeds and episodes)
	$(if $(FULL),$(INSTALL) --editable './studies[exploration]')
	$(BIN)/belated exploration $(if $(FULL),--full)

trials: $(RUNTIME)  ## learn by age on trials with their own event times (FULL=1: all seeds, and other packages)
	$(INSTALL) --editable './studies[trials]'
	$(BIN)/belated trials $(if $(FULL),--full)

tune: $(RUNTIME)  ## search the tuned hyper-parameters again and keep the winners (minutes)
	for search in synthetic riverswim linear-bandit conversions waiting chain adversarial \
	  mountain-car cart-pole acrobot mountain-car-greedy cart-pole-greedy acrobot-greedy arms lotteries locks strict-locks dense \
	  dense-by-step dense-sure dense-by-step-sure nchain deepsea rivers lakes slippery-lakes cliff taxi grids blackjack; do \
	  $(BIN)/belated tune $$search --out tuning && \
	  mkdir -p studies/src/belated_studies/tuned/$$search && \
	  cp tuning/$$search/winners.json tuning/$$search/search.csv studies/src/belated_studies/tuned/$$search/ && \
	  cp tuning/$$search/search.png docs/pictures/search-$$search.png || exit 1; \
	done

keep: $(RUNTIME)  ## run the full reports and keep the part of them that the documentation shows (hours)
	$(INSTALL) --editable './studies[exploration,trials]'
	$(BIN)/belated paper --full
	$(BIN)/python docs/keep.py report
	$(BIN)/belated systems --full
	$(BIN)/python docs/keep.py systems
	$(BIN)/belated exploration --full
	$(BIN)/python docs/keep.py exploration
	$(BIN)/belated trials --full
	$(BIN)/python docs/keep.py trials

test: lint check  ## lint, types, layers, tests and every example in the documentation (-j2: side by side)

check: $(STAMP)  ## the tests alone
	$(BIN)/python -m pytest -n 2 --dist worksteal -m 'not slow'

test-slow: $(STAMP)  ## the tests that take minutes
	$(BIN)/python -m pytest -m slow

promises: $(STAMP)  ## what the decision service promises, at full size, with the figures (an hour on two cores)
	$(BIN)/python -m pytest -n0 -s -m slow tests/service tests/decisions
	$(BIN)/python -m benchmarks --only silence --only probabilities --only learning --only service

test-oldest: $(OLDEST)  ## the core's tests with the oldest versions that pyproject.toml allows
	$(VENV)-oldest/bin/python -m pytest -n 2 -m 'not slow' -W default $(CORE)

dist-test: $(STAMP)  ## build sdist and wheel, check them, and use them in a clean environment (CLEAN=python3.13: another)
	$(BIN)/python tools/distribution.py $(CLEAN)

attack: $(STAMP)  ## attack what the library promises (ten minutes on two cores; ARGS=--quick: two minutes)
	$(BIN)/python -m attacks $(ARGS)

lint: $(STAMP)  ## style, types and the import layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(RUNTIME)  ## measure speed side by side, also against other packages, which it installs (minutes)
	$(BIN)/python -m benchmarks $(ARGS)

generate: $(STAMP)  ## write what is made from the code: exports and reference pages
	$(BIN)/python tools/exports.py
	$(BIN)/python tools/reference.py

gallery: $(STAMP)  ## run the examples of the documentation and keep what they print and draw
	$(BIN)/python tools/gallery.py

docs: $(RUNTIME)  ## build the documentation as a website in site/
	$(INSTALL) --editable '.[docs]'
	$(BIN)/python tools/website.py font
	$(BIN)/python tools/notebooks.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python tools/website.py check

clean:  ## remove everything that was built
	rm -rf $(VENV) $(VENV)-oldest build dist site report results tuning bench systems lemmas exploration trials .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
