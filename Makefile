# Everything a newcomer needs: make eval, make test. See CONTRIBUTING.md for the rest.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# Some machines forbid bytecode; without it every start compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: eval test test-interop web-types lint types layers pytest bench docs soak clean

eval: $(VENV)/.eval
	$(BIN)/proctor eval run examples/capitals.py -m local -n 5 -r 3 -T 0.7 -t 16

test: lint types layers pytest

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.test
	$(BIN)/mypy

layers: $(VENV)/.test
	$(BIN)/lint-imports

pytest: $(VENV)/.test
	$(BIN)/pytest -n 2 --dist loadgroup

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

docs: $(VENV)/.test
	$(BIN)/python docs/tables.py

soak: $(VENV)/.test
	$(BIN)/pytest -m slow tests

web-types: $(VENV)/.test
	$(BIN)/python -m tests.web.api_types web/.openapi.json
	cd web && { test -d node_modules || npm ci; } && npm run --silent types

test-interop: $(VENV)/.test
	tests/interop/install.sh
	$(BIN)/pytest -m interop tests

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Proctor needs Python 3.11 or newer; set PYTHON=python3.12, for example."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.eval: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]'
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.eval
