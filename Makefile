# make repro   compile the tables (and time them where there is a GPU), write results/
# make test    the test suite          make lint   ruff, mypy, layering rule
# make docs    the documentation       make clean  remove what the others made
# make gate    compile all probes and compare them with the golden files of the pinned tools
#
# ARCH="sm_90 sm_120"   architectures to compile for (default: the device's, else sm_90)
# PYTEST_ARGS="-k box"  more options for pytest
# JOBS=4                processes of `make test` (default: one a core)
# PY=python3            use this environment as it is and install nothing

SHELL := /bin/bash
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc 2>/dev/null || echo 2)
GPU := $(shell nvidia-smi >/dev/null 2>&1 && echo gpu)

ifeq ($(origin PY),undefined)
VENV := .venv
PY := $(VENV)/bin/python
extras = $(1)$(if $(GPU),$(comma)gpu)
stamp = $(VENV)/.stamp-$(subst $(comma),-,$(call extras,$(1)))
else
# Stamps that are never out of date: nothing to set up.
stamp :=
endif
comma := ,

REPRO := toolchain,repro
TEST := toolchain,repro,test
DOCS := toolchain,repro,test,docs

.PHONY: help repro test gate lint format docs docs-update clean
help:
	@sed -n 's/^# \?//;1,/^$$/p' Makefile

# Tables are drawn from whatever was measured, also when a row failed; its status is the outcome then.
repro: $(call stamp,$(REPRO))
	$(PY) -m pytest repro/ $(if $(GPU),--gpu) $(foreach a,$(ARCH),--arch $(a)) $(PYTEST_ARGS); status=$$?; \
	$(PY) -m repro render && exit $$status

test: $(call stamp,$(TEST))
	$(PY) -m pytest -n $(JOBS) $(PYTEST_ARGS)

# Fails when a variant's registers, spills, instructions, ... grew, and names it; skips tools without golden files.
gate: $(call stamp,$(TEST))
	$(PY) -m pytest probes examples/probe_project --golden --results build/gate -n $(JOBS) $(PYTEST_ARGS)

lint: $(call stamp,$(TEST))
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -c "from importlinter.cli import lint_imports_command as run; run()"

format: $(call stamp,$(TEST))
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: $(call stamp,$(DOCS))
	$(PY) -m sphinx -W -b html docs docs/_build/html

# Run every example of the documentation and write down what it printed; read the difference before committing.
docs-update: $(call stamp,$(TEST))
	$(PY) tests/docs_examples.py --update

clean:
	rm -rf build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -not -path './.venv/*' -prune -exec rm -rf {} +
	rm -f .venv/.stamp-*

# -- the environment

.venv/bin/python:
	@for python in $(PYTHON) python3.13 python3.12 python3.11 python3.14 python3; do \
	  if $$python -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "creating .venv with $$($$python --version)"; $$python -m venv .venv && exit 0; \
	  fi; \
	done; \
	echo "no Python >= 3.11 with venv was found; name one: make PYTHON=/path/to/python3 ..." >&2; exit 1

# One stamp a set of extras: the set-up runs once, and again when pyproject.toml changes.
.venv/.stamp-%: pyproject.toml | .venv/bin/python
	.venv/bin/python -m pip install --quiet --disable-pip-version-check -e ".[$(subst -,$(comma),$*)]"
	@touch $@
