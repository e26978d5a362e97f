# Commands of the project; `make` without a target lists them.
# Requirements: Python 3.11, 3.12 or 3.13, make, and a package registry that pip can reach.

PYTHON ?= python3
WORKERS ?= auto
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
REFEREE := .venv-referee
SITE := .venv-site
READERS := .venv-readers
# The oldest version that can read the files, and the versions around two format changes.
OLDER := 1.2.2 1.3.2 1.4.1 1.4.4
LOCK_TOOL := uv>=0.9,<1
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --custom-compile-command 'make lock' --quiet
# Lock files for machines that only run the connector: the base, and the additions of each extra.
EXTRAS := distributed notify postgres report
LOCKS := docs/service/requirements
BUILDER := hatchling
BOM_TOOL := cyclonedx-bom>=7,<8
AUDIT_TOOL := pip-audit>=2.10,<3

.DEFAULT_GOAL := help
.PHONY: help install referee readers demo test contract test-all simulate records check lock bom audit
.PHONY: bench site clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP)  ## create .venv from the lock file; PYTHON=... selects the interpreter

# The lock file is complete, so pip resolves no versions (an old pip cannot resolve extras). `pip
# check` checks the result. If the lock file or pyproject.toml is newer than the stamp file,
# everything is installed again.
$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' || { \
	  echo "$(PYTHON) is not Python 3.11, 3.12 or 3.13 (it says: $$($(PYTHON) --version 2>&1))." >&2; \
	  echo "Install one of them, then name it: make install PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments: its module ensurepip is missing." >&2; \
	  echo "On Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet \
	  --require-hashes --no-deps --requirement requirements.txt
	$(BIN)/python -m pip install --disable-pip-version-check --quiet \
	  --no-build-isolation --no-deps --no-index --editable .
	@$(BIN)/python -m pip check --disable-pip-version-check
	@touch $(STAMP)

# dbt and mypy need different versions of a package, so dbt has a separate environment.
referee: $(REFEREE)/installed  ## create .venv-referee with dbt, with which tests compare the models

$(REFEREE)/installed: requirements-referee.txt
	$(PYTHON) -m venv $(REFEREE)
	$(REFEREE)/bin/python -m pip install --disable-pip-version-check --quiet \
	  --require-hashes --no-deps --requirement requirements-referee.txt
	@touch $(REFEREE)/installed

# Older versions of DuckDB can read the published file; a test checks it.
readers: install $(OLDER:%=$(READERS)/%)  ## create .venv-readers with older versions of DuckDB, for a test

$(READERS)/%:
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --only-binary :all: \
	  --target $@.part duckdb==$*
	@mv $@.part $@

demo: install  ## pull an invented agency through Dagster, without network access
	$(BIN)/connector demo

# Distributed by file, so that a file's fixtures are built once; tests/conftest.py sets the order.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 15

test: install  ## run the fast tests; WORKERS=N sets the number of processes
	$(PYTEST) -m "not slow"

# The promises of the product, tested without knowledge of its modules.
contract: install  ## run the contract tests, a few minutes on two cores
	$(BIN)/python -m pytest -n 5 --dist worksteal -m contract --durations 10 tests/contract

# Random tests draw from a new seed each time; a failed test prints the command that replays it.
test-all: install  ## run the fast and the slow tests
	TEST_SEED=$${TEST_SEED:-$$(date +%s)} $(PYTEST)

# RUNS=10000 SCENARIO=A,B runs 10,000 simulations; SCENARIO=F SEED=87 TRACE=1 repeats one and prints
# it. WAREHOUSE=1 also keeps the history of each in a real work file, which takes ten times as long.
# TINY=all DEPTH=3 PULLS=2 runs every order of events of the tiny worlds; a shape and TAPE=0.3.1
# repeat one run.
simulate: install  ## simulate pulls; RUNS, SCENARIO, SEED, TRACE
	$(BIN)/python -m tests.simulation $(if $(RUNS),--runs $(RUNS)) \
	  $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(SEED),--seed $(SEED)) $(if $(TRACE),--trace) \
	  $(if $(TINY),--tiny $(TINY)) $(if $(DEPTH),--depth $(DEPTH)) $(if $(PULLS),--pulls $(PULLS)) \
	  $(if $(TAPE),--tape $(TAPE)) $(if $(WAREHOUSE),--warehouse)

# ONLY="demo sandbox" makes the named records; "pulls" takes two thirds of the time. ACCEPT=1 writes
# the records: say in the commit why a line changed. Takes about 6 minutes on two idle cores.
records: install  ## compare results with the accepted records; ONLY, ACCEPT=1 accepts the new ones
	$(BIN)/python -m tests.records $(ONLY) $(if $(ACCEPT),--accept)

check: install  ## check format, style, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# uv, which writes the lock files, has a separate environment and is not locked by them.
# UPGRADE= keeps locked versions, and adds new requirements.
UPGRADE := --upgrade
lock:  ## write all lock files from pyproject.toml; UPGRADE= keeps the versions
	$(PYTHON) -m venv $(VENV)-lock
	$(VENV)-lock/bin/python -m pip install --disable-pip-version-check --quiet '$(LOCK_TOOL)'
	$(VENV)-lock/bin/$(COMPILE) $(UPGRADE) pyproject.toml --extra dev \
	  --output-file requirements.txt
	$(VENV)-lock/bin/$(COMPILE) $(UPGRADE) --group pyproject.toml:referee \
	  --output-file requirements-referee.txt
	$(VENV)-lock/bin/$(COMPILE) pyproject.toml --constraint requirements.txt --no-annotate \
	  --output-file $(LOCKS)/base.txt
	echo '$(BUILDER)' | $(VENV)-lock/bin/$(COMPILE) --constraint requirements.txt --no-annotate \
	  --output-file $(LOCKS)/build.txt -
	for extra in $(EXTRAS); do \
	  $(VENV)-lock/bin/$(COMPILE) pyproject.toml --extra $$extra --constraint requirements.txt \
	    --no-annotate --output-file $(VENV)-lock/extra.txt && \
	  awk 'NR == FNR {base[$$0]; next} /^[^ ]/ {adds = /^#/ || !($$0 in base)} adds' \
	    $(LOCKS)/base.txt $(VENV)-lock/extra.txt > $(LOCKS)/$$extra.txt || exit 1; \
	done
	$(VENV)-lock/bin/$(COMPILE) $(UPGRADE) --group pyproject.toml:site \
	  --output-file requirements-site.txt
	@echo "The requirements are compiled; run make install, make check and make test-all next."

bom:  ## write dist/bom.cdx.json, the bill of materials of an installation (CycloneDX)
	$(PYTHON) -m venv $(VENV)-bom
	$(VENV)-bom/bin/python -m pip install --disable-pip-version-check --quiet '$(BOM_TOOL)'
	@mkdir -p dist
	cat $(LOCKS)/*.txt | $(VENV)-bom/bin/cyclonedx-py requirements --pyproject pyproject.toml \
	  --output-reproducible --output-file dist/bom.cdx.json -

# The list of vulnerabilities is on the network, so this is not part of the tests.
audit:  ## list locked packages with known vulnerabilities (uses the network)
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --disable-pip-version-check --quiet '$(AUDIT_TOOL)'
	$(VENV)-audit/bin/pip-audit --strict --disable-pip --require-hashes \
	  $(foreach each,base $(EXTRAS),--requirement $(LOCKS)/$(each).txt)

bench: install  ## measure time and memory against scripts, for docs/SCALE.md
	$(BIN)/python -m benchmarks

site: install $(SITE)/installed  ## build the website of the documents, dist/site/index.html
	$(BIN)/python -m generate dist/docs
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet

$(SITE)/installed: requirements-site.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --disable-pip-version-check --quiet \
	  --require-hashes --no-deps --requirement $<
	@touch $@

clean:  ## delete the files that these commands created, except data
	rm -rf $(VENV) $(VENV)-lock $(VENV)-bom $(VENV)-audit $(REFEREE) $(READERS) $(SITE) dist \
	  .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
