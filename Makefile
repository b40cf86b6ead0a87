.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench golden fix clean
.SUFFIXES:

VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(READY) ## make .venv with weft and all that the tests need; check Java

$(READY): pyproject.toml scripts/setup
	@scripts/setup $(VENV)
	@touch $@

demo: setup ## run the main joins on small tables and print the results
	@$(PY) examples/join_demo.py

test: setup ## run every test
	@$(PY) -m pytest

check: setup ## lint, formatting, types, layers
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check --quiet .
	@$(PY) -m mypy
	@$(PY) -m pytest -q tests/test_layers.py

bench: setup ## time joins on generated data
	@$(PY) bench/joins.py

golden: setup ## rewrite the golden texts, then show what changed
	@$(PY) -m pytest -q -m golden --rewrite-golden
	@git --no-pager diff --stat -- tests docs README.md

fix: setup ## apply the linter's fixes and format
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

clean: ## remove caches and build output, keep .venv
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	@find src tests examples bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
