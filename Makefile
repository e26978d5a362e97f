# Everything that a person or a machine does with the project; `make` alone lists it.
# It needs Python 3.11, 3.12 or 3.13, make, and a package registry that pip can reach.

PYTHON ?= python3
WORKERS ?= auto
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
REFEREE := .venv-referee
SITE := .venv-site
READERS := .venv-readers
PEERS := .venv-peers
PEER_NAMES := dlt singer airbyte
# The first that can be read by, and those around the two where what DuckDB reads has changed.
OLDER := 1.2.2 1.3.2 1.4.1 1.4.4
LOCK_TOOL := uv>=0.9,<1
COMPILE := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --custom-compile-command 'make lock' --quiet
# What a machine installs that only runs the connector: the base, and what each extra adds to it.
EXTRAS := distributed keyring lakehouse metrics page postgres report
LOCKS := docs/service/requirements
BUILDER := hatchling
BOM_TOOL := cyclonedx-bom>=7,<8
AUDIT_TOOL := pip-audit>=2.10,<3

.DEFAULT_GOAL := help
.PHONY: help install referee readers demo test test-all simulate check lock bom audit generate
.PHONY: bench peers pictures site clean

help:  ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP)  ## make .venv with everything, locked; PYTHON=... chooses the interpreter

# The lock is complete, so pip resolves nothing (an old one cannot, for a requirement with extras);
# what it installed is checked afterwards.
# The stamp is newer than the lock and the project's description, or everything is installed again.
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

# dbt and mypy exclude each other, so dbt has an environment of its own.
referee: $(REFEREE)/installed  ## make .venv-referee with dbt, which tests hold the models against

$(REFEREE)/installed: requirements-referee.txt
	$(PYTHON) -m venv $(REFEREE)
	$(REFEREE)/bin/python -m pip install --disable-pip-version-check --quiet \
	  --require-hashes --no-deps --requirement requirements-referee.txt
	@touch $(REFEREE)/installed

# The files that the connector writes are read by older versions of DuckDB as well.
readers: install $(OLDER:%=$(READERS)/%)  ## make .venv-readers with older DuckDB, for a test

$(READERS)/%:
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --only-binary :all: \
	  --target $@.part duckdb==$*
	@mv $@.part $@

demo: install  ## pull a made-up agency through Dagster, on this machine alone
	$(BIN)/connector demo

# By file, so that the fixtures of a file are built once; tests/conftest.py decides the order.
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 15

test: install  ## run the fast tests; WORKERS=1 uses one process instead of one more than cores
	$(PYTEST) -m "not slow"

# Random tests draw from a new seed each time; a failed test prints the command that replays it.
test-all: install  ## run the fast and the slow tests
	TEST_SEED=$${TEST_SEED:-$$(date +%s)} $(PYTEST)

# RUNS=10000 SCENARIO=A,B plays so many; SCENARIO=F SEED=87 TRACE=1 replays one and prints it.
# WAREHOUSE=1 keeps the history of each in a real warehouse as well, ten times as slow.
# RECORD=1 writes down what it printed, and how soon planted faults are seen: docs/CORRECTNESS.md.
# TINY=all DEPTH=3 PULLS=2 plays every run of every tiny world; a shape and TAPE=0.3.1, one run.
simulate: install  ## play the pull in simulated worlds; RUNS, SCENARIO, SEED, TRACE
	$(BIN)/python -m tests.simulation $(if $(RUNS),--runs $(RUNS)) \
	  $(if $(SCENARIO),--scenario $(SCENARIO)) $(if $(SEED),--seed $(SEED)) $(if $(TRACE),--trace) \
	  $(if $(TINY),--tiny $(TINY)) $(if $(DEPTH),--depth $(DEPTH)) $(if $(PULLS),--pulls $(PULLS)) \
	  $(if $(TAPE),--tape $(TAPE)) $(if $(WAREHOUSE),--warehouse) \
	  $(if $(RECORD),--record && $(BIN)/python -m generate)

check: install  ## check format, style, types and layers, as they must be before a commit
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo --no-cache

# The compiler of the lock has an environment of its own: it must not be locked by its own output.
# UPGRADE= keeps what is locked, and adds what is new.
UPGRADE := --upgrade
lock:  ## compile all requirements anew from pyproject.toml; UPGRADE= keeps the versions
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
	for peer in $(PEER_NAMES); do \
	  $(VENV)-lock/bin/$(COMPILE) $(UPGRADE) --group pyproject.toml:peer-$$peer \
	    --output-file benchmarks/peers/requirements-$$peer.txt || exit 1; \
	done
	@echo "The requirements are compiled; run make install, make check and make test-all next."

bom:  ## write dist/bom.cdx.json: what a machine installs that runs the connector (CycloneDX)
	$(PYTHON) -m venv $(VENV)-bom
	$(VENV)-bom/bin/python -m pip install --disable-pip-version-check --quiet '$(BOM_TOOL)'
	@mkdir -p dist
	cat $(LOCKS)/*.txt | $(VENV)-bom/bin/cyclonedx-py requirements --pyproject pyproject.toml \
	  --output-reproducible --output-file dist/bom.cdx.json -

# The advisories are on the network; what needs none is tested with everything else.
audit:  ## ask the network which locked packages have known vulnerabilities
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/python -m pip install --disable-pip-version-check --quiet '$(AUDIT_TOOL)'
	$(VENV)-audit/bin/pip-audit --strict --disable-pip --require-hashes \
	  $(foreach each,base $(EXTRAS),--requirement $(LOCKS)/$(each).txt)

# A new field is one line of its page in connector/catalog, a new resource is one page there.
generate: install  ## write anew what follows from the catalog: views, audits, documents
	$(BIN)/python -m generate

# Takes about 12 minutes on two idle cores.
bench: install  ## measure time and memory against scripts, for docs/BENCHMARKS.md
	$(BIN)/python -m benchmarks
	$(BIN)/python -m generate

# What this is measured beside, each in an environment of its own.
peers: install $(PEER_NAMES:%=$(PEERS)/%/installed)  ## measure dlt, Singer and Airbyte beside this
	$(BIN)/python -m benchmarks.peers
	$(BIN)/python -m generate

$(PEERS)/%/installed: benchmarks/peers/requirements-%.txt
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --disable-pip-version-check --quiet \
	  --require-hashes --no-deps --requirement $<
	@touch $@

pictures: install  ## take the pictures of the documents anew, from the running program
	$(BIN)/python -m generate.pictures

site: install $(SITE)/installed  ## build the site of the documents, dist/site/index.html
	$(BIN)/python -m generate.site
	NO_MKDOCS_2_WARNING=1 $(SITE)/bin/mkdocs build --strict --quiet

$(SITE)/installed: requirements-site.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --disable-pip-version-check --quiet \
	  --require-hashes --no-deps --requirement $<
	@touch $@

clean:  ## take away what these commands made, but no data
	rm -rf $(VENV) $(VENV)-lock $(VENV)-bom $(VENV)-audit $(REFEREE) $(READERS) $(PEERS) $(SITE) dist \
	  .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis
