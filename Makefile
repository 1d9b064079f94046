# Needs Python 3.11+, pip, make and git; everything else is installed into .venv.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
POLICY ?= deploy/demo/keyhole.toml
ENGINE ?= spark
# Four on two cores: many tests wait for a process to start, or for a moment to pass.
JOBS   ?= 4
# The oldest Python that is promised, where the system has one of its own: Debian's is 3.11.2.
OLDEST ?= $(firstword $(wildcard /usr/bin/python3.11) $(PYTHON))

# Without bytecode each of the hundreds of processes that the tests start would compile Keyhole anew.
export PYTHONDONTWRITEBYTECODE =

# What a bare `make` does.
.DEFAULT_GOAL = help

.PHONY: help demo demo-spark serve check test test-changed tests-of-everything test-thorough test-anew test-all test-oldest test-on-interpreter test-clients test-spark test-spark-servers test-mutants lint bench bench-accounting bench-planning bench-people bench-groups bench-tpch experiments superset pages docs lock clean

help:  ## what make can do
	@echo "Keyhole: make TARGET"
	@sed -nE 's/^([a-z-]+):[^#]*  ## (.*)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  %-17s %s\n", $$1, $$2 }'

demo: $(VENV)/.installed  ## real questions over real customers, answered privately
	@$(BIN)/keyhole demo $(if $(KEEP),--keep) $(if $(HTML),--html $(HTML))

demo-spark: $(VENV)/.installed-sail  ## questions as the demo's over ROWS=10000000 lines in parquet files on Sail, or on URL=sc://... ENGINE=spark
	@$(BIN)/python -W ignore -m deploy.spark.show $(if $(ROWS),--rows $(ROWS)) $(if $(URL),--url '$(URL)' --engine $(ENGINE))

serve: $(VENV)/.installed  ## PostgreSQL endpoint and REST for POLICY=...
	@$(BIN)/keyhole serve --policy $(POLICY)

# Whose turn it is, and after how many seconds no test begins: tests/turns.py.
TURNS   = $(if $(TURN),--turn=$(TURN)) $(if $(WITHIN),--within=$(WITHIN))
# The matrices of tests are small: threads of numpy that wait for one another take a tenth of what tests of noise take.
PYTEST  = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q --processes=$(JOBS) --durations=15

check: lint  ## lint, types, and the written cases of planner, mechanisms, ledger and wire: between two thoughts
	@$(PYTEST) -m 'not (installed or server or process or statistical or sized or long)' tests/accountant tests/mechanisms tests/planner tests/proxy/wire

test-changed: $(VENV)/.installed-test  ## style of what changed since SINCE=HEAD, and the tests near it: between two thoughts
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .
	@$(PYTEST) -m 'not (installed or long)' --near=$(or $(SINCE),HEAD)

test: $(VENV)/.installed-test  ## lint, and tests of everything, with real PostgreSQL and DuckDB, fewer than test-all; JOBS=4 at a time
	@$(MAKE) --no-print-directory -j2 lint tests-of-everything

tests-of-everything: $(VENV)/.installed-test
	@$(PYTEST) -m 'not (installed or long)'

test-thorough: $(VENV)/.installed-test  ## what test leaves out, and at full size what it shortens; TURN=HEAD: near the last day's changes, and a fourth of the rest; WITHIN=360: as many as begin in 360 s
	@$(PYTEST) -m '(sized or long) and not installed' --hypothesis-profile=thorough $(TURNS)

test-anew: $(VENV)/.installed-test  ## test-thorough on other random cases and other noise than ever before
	@$(PYTEST) -m '(sized or long) and not installed' --hypothesis-profile=anew

test-all: lint $(VENV)/.installed-spark  ## every test, the long ones, too, on Sail as well, at full size, as before a release
	@$(PYTEST) --hypothesis-profile=thorough

test-oldest:  ## the tests that stand on asyncio, ssl, sqlite3, threads and processes, on the oldest Python there is, in a .venv of its own; TURN=HEAD as above
	@$(MAKE) --no-print-directory VENV=.venv-oldest PYTHON=$(OLDEST) test-on-interpreter

test-on-interpreter: $(VENV)/.installed-test
	@$(BIN)/python --version
	@$(PYTEST) -m 'interpreter and not (installed or drawn)' $(TURNS)

test-clients: $(VENV)/.installed-test  ## clients from apt and npm, and large ones (JDBC, ODBC, node, ADBC, polars, pgbouncer, Prometheus, Apache Spark); what cannot be installed is skipped; TURN=HEAD as above
	@VENV=$(VENV) bash tests/clients/installed/run.sh $(if $(TURN),--turn=$(TURN))

SPARK_TESTS = tests/proxy/sources/spark tests/proxy/sources/spark_sql tests/proxy/sources/over_spark tests/end_to_end/spark

test-spark: $(VENV)/.installed-spark  ## the tests of Spark as a source, on Sail; without its packages test leaves them out; TURN=HEAD as above
	@$(PYTEST) $(SPARK_TESTS) $(TURNS)

test-spark-servers: $(VENV)/.installed-spark  ## the same at full size on the Apache Spark in KEYHOLE_SPARK_HOME, in one process and in several; an hour or two
	@$(BIN)/python -m pytest -q --durations=15 -m installed --hypothesis-profile=thorough $(SPARK_TESTS)

test-mutants: $(VENV)/.installed-test  ## faults of one line that the tests nearby must notice, ONLY="planner/ accountant/" of them; half an hour
	@$(BIN)/python -m tests.mutants $(ONLY)

lint: $(VENV)/.installed-test  ## style, prose, types and import rules
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m tests.project.prose
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(VENV)/.installed-test  ## same-run ratios to the plain engine
	@$(BIN)/python -m benchmarks.endpoint

bench-accounting: $(VENV)/.installed-test  ## milliseconds of the ledger's verbs, large questions and long ledgers
	@$(BIN)/python -m benchmarks.accounting

bench-planning: $(VENV)/.installed-test  ## milliseconds from text to plan, typical and large questions
	@$(BIN)/python -m benchmarks.planning

bench-people: $(VENV)/.installed-test  ## how many of a month's 40 ordinary questions fit a preset's budget, on three kinds of data, and how truly
	@$(BIN)/python -m benchmarks.people

bench-groups: $(VENV)/.installed-test  ## how many questions fit where a household is in 52 weeks, beside peers' noise and accounting
	@$(BIN)/python -m benchmarks.people.many_groups

bench-tpch: $(VENV)/.installed-test .venv-tpch/.installed  ## TPC-H's queries as questions about customers: planned, price, answers and time beside the plain ones; SCALE=1
	@$(BIN)/python -m benchmarks.tpch --generator .venv-tpch/bin/python --scale $(or $(SCALE),1)

experiments: $(VENV)/.installed-experiments  ## the papers' experiments, RUNS=100 each, and those on streams, alarms, scores, attackers and bounds, into docs/results.md and docs/results
	@$(BIN)/python -m benchmarks.experiments
	@$(BIN)/python -m benchmarks.streams
	@$(BIN)/python -m benchmarks.alarms
	@$(BIN)/python -m benchmarks.diagnostics
	@$(BIN)/python -m benchmarks.risk
	@$(BIN)/python -m benchmarks.bounds

superset: $(VENV)/.installed .venv-superset/.installed  ## Apache Superset over the demo, into docs/bi; needs chromium and chromedriver
	@$(BIN)/python -m deploy.superset.show --superset .venv-superset/bin

pages: $(VENV)/.installed-test  ## what the pages take from the code: the tables of the house, the reference of the policy, the commands and the picture of a question's way
	@$(BIN)/python -m docs.generator

docs: pages .venv-docs/.installed  ## the documentation as a site, which a running Keyhole shows at /docs; fails at a warning or a broken link
	@$(BIN)/python -m docs.generator.site --zensical .venv-docs/bin/zensical

# uv keeps the versions that stand in the files already, so that they are the same whoever makes them; UPGRADE=--upgrade
# takes the newest. Neither the address of an index nor the maker's own configuration of uv gets into them.
LOCK = .venv-lock/bin/uv pip compile --quiet --no-config --universal --python-version 3.11 --generate-hashes --custom-compile-command "make lock" $(UPGRADE)

lock: .venv-lock/.installed  ## the versions and hashes that the image is made of, into deploy/; UPGRADE=--upgrade for newer ones
	@$(LOCK) pyproject.toml --output-file deploy/requirements.lock
	@$(PYTHON) -c "import tomllib; print(*tomllib.load(open('pyproject.toml', 'rb'))['build-system']['requires'], sep='\n')" \
	| $(LOCK) - --output-file deploy/build-requirements.lock

clean:  ## what was installed and cached
	rm -rf $(VENV) .venv-oldest .venv-superset .venv-tpch .venv-lock .venv-docs .docs proxy/rest/site .keyhole .hypothesis .mypy_cache .ruff_cache .import_linter_cache .benchmarks

# uv finds out what goes together, fetches and unpacks it in a sixth of pip's time; where the system has none, the
# environment gets one. It does not read pip's configuration, so where it finds no index pip is asked. Neither compiles:
# what is never imported need not be. A Python without ensurepip gets its environment from virtualenv.
$(VENV)/bin/python:
	@if command -v uv >/dev/null 2>&1; then uv venv -q --seed --python $(PYTHON) $(VENV); \
	elif $(PYTHON) -c "import ensurepip" >/dev/null 2>&1; then $(PYTHON) -m venv $(VENV); \
	else $(PYTHON) -m pip install -q --user virtualenv && $(PYTHON) -m virtualenv -q $(VENV); fi
	@command -v uv >/dev/null 2>&1 || $@ -m pip install -q --disable-pip-version-check --no-compile 'uv>=0.8,<1' 2>/dev/null || true

define install
	@echo "installing into $(VENV) ..."
	@VIRTUAL_ENV=$(abspath $(VENV)) PATH="$$PATH:$(abspath $(BIN))" uv pip install -q -e '$(1)' \
	|| $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile -e '$(1)'
	@touch $@
endef

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(call install,.)

$(VENV)/.installed-test: pyproject.toml | $(VENV)/bin/python
	$(call install,.[test])
	@touch $(VENV)/.installed $(VENV)/.installed-experiments

$(VENV)/.installed-spark: $(VENV)/.installed-test
	$(call install,.[test-spark])
	@touch $(VENV)/.installed-sail

$(VENV)/.installed-sail: pyproject.toml | $(VENV)/bin/python
	$(call install,.[sail])
	@touch $(VENV)/.installed

$(VENV)/.installed-experiments: pyproject.toml | $(VENV)/bin/python
	$(call install,.[experiments])
	@touch $(VENV)/.installed

# Superset has an environment of its own: it wants older libraries than Keyhole.
.venv-superset/.installed: deploy/superset/requirements.txt
	@echo "installing Superset into .venv-superset, a few minutes ..."
	@$(PYTHON) -m venv .venv-superset
	@.venv-superset/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

# TPC-H's generator is an extension for one release of DuckDB, which is older than Keyhole's.
.venv-tpch/.installed: benchmarks/tpch/requirements.txt
	@$(PYTHON) -m venv .venv-tpch
	@.venv-tpch/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

.venv-docs/.installed: docs/generator/site/requirements.txt
	@$(PYTHON) -m venv .venv-docs
	@.venv-docs/bin/python -m pip install -q --disable-pip-version-check -r $<
	@touch $@

.venv-lock/.installed:
	@$(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install -q --disable-pip-version-check 'uv>=0.8,<1'
	@touch $@
