# Everything a newcomer needs: make eval, make test. See CONTRIBUTING.md for the rest.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

# Some machines forbid bytecode; without it every start compiles everything anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: eval test test-interop web web-test web-types lint types layers pytest bench docs pictures soak clean

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

# A worker that crashed is not replaced: xdist 3.8 would wait for its finished groups for ever.
pytest: $(VENV)/.test
	$(BIN)/pytest -n 4 --dist loadgroup --max-worker-restart 0 $(PYTEST_FLAGS)

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

docs: $(VENV)/.test
	$(BIN)/python docs/tables.py

# After a change of the pages in README.md and docs/dashboard.md.
pictures: web $(VENV)/.test
	$(BIN)/python docs/take_pictures.py

soak: $(VENV)/.test
	$(BIN)/pytest -m slow tests

web: | $(VENV)/bin/python
	$(BIN)/python build_tools/dashboard.py

web-test: web
	cd web && npm run --silent check && npm test --silent

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
