# `make` alone lists the targets. Every target sets up what it needs in .venv, first time only.
# All paths are relative, so that a folder with a space in its name works.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PY := .venv/bin/python
PIP := $(PY) -m pip install --progress-bar off --quiet --constraint constraints.txt
# The pins are tested on 3.11, so it is looked for first; `make setup PYTHON=python3.13` chooses another.
PYTHON ?=
JOBS ?= 2
SEEDS ?= 0
MINUTES ?= 60

# The stamp holds the folder's path: an editable install points there, so a moved or copied folder is set up anew, and
# so is one whose Python is gone.
MOVED := $(shell [ -x .venv/bin/python ] && [ "$$(cat .venv/.runtime 2>/dev/null)" = "$$(pwd)" ] || echo moved)
.PHONY: help setup demo test fuzz integration faults soak lint audit docs benchmark reproduce clean $(MOVED)

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s%s\n", $$1, $$2}'

setup: .venv/.dev ## create .venv with the package and the tools for test, lint and docs
	@echo "ready: $(PY) -m mario --help"

demo: .venv/.runtime ## train ERM, GRACE, MARIO and the controls on a shifting graph, write a page that shows them
	@$(PY) -m mario demo

test: .venv/.dev ## run the tests in JOBS + 1 processes (3); MARIO_DATA=FOLDER adds those on real data
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n $$(($(JOBS) + 1)) --dist worksteal # some wait for other processes

fuzz: .venv/.dev ## try random graphs, settings, files and command lines for MINUTES (60); .fuzz keeps what fails
	@OMP_NUM_THREADS=1 $(PY) tests/fuzz/long.py $(MINUTES)

integration: .venv/.integration ## run the tests that need a server or a browser, installing what they need (as root)
	@tests/integration/install.sh
	@OMP_NUM_THREADS=1 $(PY) -m pytest -n $$(($(JOBS) + 1)) --dist loadfile tests/integration # many wait for servers

faults: .venv/.integration ## kill a run, and fail its disk, at every system call that changes its folder (half an hour)
	@tests/integration/install.sh
	@MARIO_FAULTS=all OMP_NUM_THREADS=1 $(PY) -m pytest -s tests/integration/test_system_calls.py

soak: .venv/.integration ## kill processes of reproduce and tune at random for MINUTES (60), check that nothing is lost
	@tests/integration/install.sh
	@$(PY) -m tests.soak --minutes $(MINUTES)

lint: .venv/.dev ## check format, style, types, the direction of imports and the language
	@echo "ruff format"; $(PY) -m ruff format --check .
	@echo "ruff check"; $(PY) -m ruff check .
	@echo "mypy"; $(PY) -m mypy
	@echo "import-linter"; $(PY) .venv/bin/lint-imports
	@echo "language"; $(PY) docs/language.py

audit: .venv/.audit ## compare the pins of constraints.txt with databases of known vulnerabilities, those that can be reached
	@$(PY) .ci/audit.py constraints.txt

docs: .venv/.dev ## build the documentation into site/; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict
	@echo "documentation: site/index.html"

benchmark: .venv/.dev ## measure speed and memory, write docs/performance.md and docs/scaling.md; SEEDS=5 adds runs whose accuracies are compared (half an hour)
	@$(PY) -m benchmarks --large --seeds $(SEEDS) --jobs $(JOBS)
	@$(PY) -m benchmarks.write

reproduce: .venv/.runtime ## run what docs/results.md shows, write it, README's table and picture and docs/report/index.html (hours); what is done is not repeated
	@$(PY) -m mario reproduce table-concept table-covariate ablation encoders other-methods graph-classification photo \
	  --records docs/report/runs.jsonl --document docs/results.md --document README.md \
	  --report docs/report/index.html
	@$(PY) docs/curves.py

clean: ## remove .venv, caches and built documentation; runs/ and demo/ stay
	rm -rf .venv site dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@for python in $(PYTHON) python3.11 python3.12 python3.13 python3; do \
	  if "$$python" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "creating .venv with $$("$$python" --version) ($$python)"; \
	    "$$python" -m venv --clear .venv; exit; \
	  fi; \
	done; \
	echo "No Python 3.11 or newer with venv found; tried: $(PYTHON) python3.11 python3.12 python3.13 python3." >&2; \
	echo "Install one, or name it: make setup PYTHON=/path/to/python" >&2; \
	exit 1

# hatchling is pinned like the rest and installed first: an isolated build would fetch whichever is newest.
.venv/.runtime: pyproject.toml constraints.txt $(MOVED) | .venv/bin/python
	@echo "installing mario and what it needs into .venv (a few minutes the first time)"
	@$(PIP) hatchling
	@$(PIP) --no-build-isolation --editable .
	@pwd > $@

.venv/.dev: .venv/.runtime
	@echo "installing the tools for test, lint and docs into .venv"
	@$(PIP) --no-build-isolation --editable '.[test,lint,docs]'
	@touch $@

.venv/.audit: .venv/.dev
	@echo "installing the tools for audit into .venv"
	@$(PIP) --no-build-isolation --editable '.[audit]'
	@touch $@

.venv/.integration: .venv/.dev
	@echo "installing what the integration tests need into .venv"
	@$(PIP) --no-build-isolation --editable '.[integration]'
	@touch $@
