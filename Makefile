# `make demo` and `make test` do all the set-up a fresh machine needs: Python 3.11 or newer, make and nothing else.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
# The suite starts many processes that load the same modules; where bytecode is not to be written, it still is in here.
export PYTHONDONTWRITEBYTECODE :=

# Every installation is held to the versions that were tried; without, pip may choose a build of torch with gigabytes of CUDA.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint style browser bench completion dist try-wheel clean

demo: $(STAMP)
	$(BIN)/vgae train cora --model vgae --out runs/demo --overwrite
	$(BIN)/vgae evaluate runs/demo
	$(BIN)/vgae plot runs/demo

# One process more than there are cores, up to four: some tests wait for browsers and for other processes.
WORKERS := $(shell n=$$(nproc 2>/dev/null || echo 2); [ $$n -lt 4 ] && echo $$((n + 1)) || echo 4)

# Types are checked beside the tests, because that is work for one core; what was found is told at the end.
test: style browser
	@mkdir -p build; $(BIN)/mypy >build/types.txt 2>&1 & types=$$!; \
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal -rs; tests=$$?; \
	wait $$types; types=$$?; cat build/types.txt; exit $$((tests | types))

lint: style
	$(BIN)/mypy

style: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# The explorer is tested in a real browser. Where there is none and none can be had, its tests are skipped and say why.
browser:
	@for name in chromium chromium-browser google-chrome chrome; do command -v $$name >/dev/null && exit 0; done; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  echo "installing chromium, in which the explorer is tested"; export DEBIAN_FRONTEND=noninteractive; \
	  { apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "no browser was found, and none could be installed: the tests of the explorer in a browser are skipped"

# The site as files that any browser opens, without a server and without a network. Every warning is an error.
.PHONY: docs linkcheck
docs: .venv/.installed-docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet --nitpicky -d build/doctrees docs build/site
	@echo "the site is in build/site/index.html"

# Whether links to other sites still lead somewhere; this needs a network.
linkcheck: .venv/.installed-docs
	$(BIN)/python -m sphinx -b linkcheck --quiet -d build/doctrees docs build/linkcheck

.venv/.installed-docs: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python $(PIP_INSTALL) --editable ".[docs]"
	touch $@

bench: $(STAMP)
	$(BIN)/python benchmarks/iteration.py

# What shells complete, src/vgae/cli/completion.json, from the commands and their options.
completion: $(STAMP)
	$(BIN)/python -m vgae.cli.completion_table

# The wheel and the source archive, in dist/.
dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m hatchling build --directory dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl

# The wheel as a stranger meets it: in an environment of its own, with all that it depends on. Takes minutes and a gigabyte.
try-wheel: dist
	rm -rf build/bare
	$(PYTHON) -m venv build/bare
	build/bare/bin/python $(PIP_INSTALL) dist/*.whl
	build/bare/bin/vgae --version
	cd build/bare && bin/vgae train cora --out runs/cora --overwrite

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python $(PIP_INSTALL) --no-compile "pip>=25"  # older ones take twice as long to choose versions
	$(BIN)/python $(PIP_INSTALL) --no-compile --editable ".[dev]"
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x /tests/ .venv/lib src || true  # what pip does, on all cores; some are templates
	touch $(STAMP)

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
