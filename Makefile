.DEFAULT_GOAL := help
.PHONY: help setup demo test quick check docs test-spark-versions coverage constraints release kafka bench bench-quick bench-streams bench-peers bench-flink coming-from golden fix clean
.SUFFIXES:

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
CAN_RUN := $(VENV)/.can-run
PEERS := bench/.venv-peers
FLINK := bench/.venv-flink
DBT := bench/.venv-dbt
PROCESSES := 2

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with weft and all that the tests need; check Java

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup $(VENV)
	@touch $@

# The demo needs what users need: none of the development tools.
$(CAN_RUN): pyproject.toml constraints.txt scripts/setup
	@if [ -e $(READY) ] && [ ! $(READY) -ot pyproject.toml ]; then :; else scripts/setup $(VENV) run; fi
	@touch $@

demo: $(CAN_RUN) ## run joins, a pipeline and a stream join on small tables, print the results (a minute)
	@$(PY) examples/demo.py

test: setup ## run every test, about half an hour; the files are shared between two processes (PROCESSES=0 for one)
	@echo "every test: about half an hour with two processes; make quick runs those without Spark in two minutes"
	@$(PY) -m pytest -n $(PROCESSES) --dist loadfile --no-loadscope-reorder

quick: setup ## run the tests that need no JVM
	@$(PY) -m pytest -q -n auto --dist worksteal -m "not spark and not connect and not kafka and not slow"

check: setup ## lint, formatting, types, layers
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m mypy
	@$(PY) -m pytest -q tests/test_layers.py

docs: setup ## build the documentation site into site/ (no network)
	@$(PY) scripts/build_site.py

test-spark-versions: setup ## run the join suite, a pipeline and a stream on each minor version of Spark (SPARK="4.0 4.1" for some)
	@scripts/test-spark-versions $(SPARK)

coverage: setup ## show for each package how many lines the tests without a JVM run
	@scripts/coverage

constraints: setup ## write the installed versions into constraints.txt
	@$(PY) -m pip list --format=freeze --exclude weft --exclude pip --exclude setuptools > .constraints
	@{ sed -n '/^#/p' constraints.txt; sort -f .constraints; } > .constraints.new && mv .constraints.new constraints.txt && rm .constraints

release: setup ## build, check and tag a release (VERSION=1.2.3)
	@scripts/release $(VERSION)

kafka: setup ## run a Kafka broker on port 9092 until Ctrl-C (its jars come by Maven once)
	@$(PY) tests/kafka_broker.py

bench: setup bench-peers bench-flink ## time joins on generated data, Weft beside other engines (hours; BENCH="--only W1" for a part)
	@$(PY) bench/joins.py
	@$(PY) bench/pipeline.py
	@WEFT_BENCH_PEERS=$(abspath $(PEERS))/bin/python $(PY) bench/temporal.py $(BENCH)
	@$(PEERS)/bin/python bench/plot.py
	@$(PY) bench/streams.py

bench-quick: setup bench-peers ## the same temporal joins on small tables (minutes); nothing is kept
	@WEFT_BENCH_PEERS=$(abspath $(PEERS))/bin/python $(PY) bench/temporal.py --quick $(BENCH)

bench-streams: setup bench-flink ## time stream joins alone, Weft beside Spark by hand and PyFlink (BENCH="--quick" for a glance)
	@$(PY) bench/streams.py $(BENCH)

bench-peers: $(PEERS)/.ready ## make bench/.venv-peers with the engines that Weft is compared with

$(PEERS)/.ready: bench/peers/requirements.txt | $(READY)
	@if command -v uv >/dev/null; then \
		uv venv --quiet --clear --python $(PY) $(PEERS) && uv pip install --quiet --python $(PEERS)/bin/python -r $<; \
	else \
		$(PY) -m venv --clear $(PEERS) && $(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<; \
	fi
	@touch $@

bench-flink: $(FLINK)/.ready ## make bench/.venv-flink with PyFlink, whose libraries do not fit beside Spark's

$(FLINK)/.ready: bench/peers/flink-requirements.txt | $(READY)
	@if command -v uv >/dev/null; then \
		uv venv --quiet --clear --python $(PY) $(FLINK) && uv pip install --quiet --python $(FLINK)/bin/python -r $<; \
	else \
		$(PY) -m venv --clear $(FLINK) && $(FLINK)/bin/python -m pip install --quiet --disable-pip-version-check -r $<; \
	fi
	@touch $@

$(DBT)/.ready: bench/peers/dbt-requirements.txt | $(READY)
	@if command -v uv >/dev/null; then \
		uv venv --quiet --clear --python $(PY) $(DBT) && uv pip install --quiet --python $(DBT)/bin/python -r $<; \
	else \
		$(PY) -m venv --clear $(DBT) && $(DBT)/bin/python -m pip install --quiet --disable-pip-version-check -r $<; \
	fi
	@touch $@

coming-from: setup $(FLINK)/.ready $(DBT)/.ready ## run the pages of docs/coming_from with Flink and dbt too, which have environments of their own
	@$(PY) -m pytest -q tests/test_coming_from.py

golden: setup ## rewrite the golden texts, then show what changed
	@$(PY) -m pytest -q -m golden --rewrite-golden
	@git --no-pager diff --stat -- tests docs README.md

fix: setup ## apply the linter's fixes and format
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

clean: ## remove caches and build output, keep .venv
	@rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	@find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
