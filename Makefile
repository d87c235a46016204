# `make demo` and `make test` do all the set-up a fresh machine needs: Python 3.11 or newer, make and nothing else.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# The suite starts many processes that load the same modules; where bytecode is not to be written, it still is in here.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test lint bench clean

demo: $(STAMP)
	$(BIN)/vgae train cora --model vgae --out runs/demo --overwrite
	$(BIN)/vgae evaluate runs/demo
	$(BIN)/vgae plot runs/demo

test: lint
	$(BIN)/pytest --numprocesses auto --maxprocesses 4 --dist worksteal

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/iteration.py

$(STAMP): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[dev]"
	$(BIN)/python -W ignore -m compileall -qq -j 0 .venv/lib src || true  # what pip does, on all cores; some are templates
	touch $(STAMP)

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
