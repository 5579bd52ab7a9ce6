# Everything that a person does here; `make help` lists it.
PYTHON ?= python3
UV_VERSION := 0.13.9
BIN := .venv/bin
CONFIG ?= configs/flights.yaml
SEED ?= 1
# tests in three processes, as they often wait, in the groups of tests/conftest.py; those marked `alone` read the clock
# and want the machine for themselves
SHARED := $(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder

# a test run starts hundreds of Python processes, each of which would compile our modules anew
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup environment bench test tools prove quick coverage shuffle lint docs ui spark-env flink jvm-link kafka requirements lock browser network clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: .venv/.ready ## Build .venv, which holds the streamgauge command

.venv/.ready: pyproject.toml uv.lock
	@scripts/preflight.sh "$(PYTHON)"
	@scripts/setup.sh "$(PYTHON)" "$(UV_VERSION)"
	@touch $@

bench: setup ## Run the main job on the real quickstart data, embedded
	@$(BIN)/streamgauge run $(CONFIG)

test: tools setup browser network ## Run everything that CI runs; nothing is skipped, the longest tests are in `make prove`
	@$(MAKE) --no-print-directory -j 4 flink jvm-link kafka lint
	@$(SHARED) -m "not alone and not prove"
	@$(BIN)/pytest -q -m "alone and not prove"

tools:
	@scripts/preflight.sh "$(PYTHON)" test

prove: tools setup browser network flink jvm-link kafka ## Prove the instrument in about three hours: long tests, searches, judges, hostile input
	@$(BIN)/pytest -q -m prove
	@for seed in 1 2 3; do $(BIN)/python -m tests.hostile --seed $$seed --draws 1000 || exit 1; done
	@$(BIN)/python -m benchmarks.search
	@$(BIN)/python -m benchmarks.changes --without-otava
	@$(BIN)/python -m benchmarks.wire --seeds 7
	@$(BIN)/python -m benchmarks.known_job --seeds 3 --repeats 2 --seconds 8

quick: setup kafka lint ## Run the tests that need neither Spark nor minutes
	@$(SHARED) --quick

coverage: setup ## Print the lines and branches of the library that the quick tests leave out, by file
	@$(SHARED) --quick --cov --cov-report=term

shuffle: setup ## Run all but the end-to-end tests in a random order, in one process: make shuffle SEED=2
	@$(BIN)/pytest -q -p randomly --randomly-seed=$(SEED) -m "not e2e and not alone and not prove"

lint: setup ## Check style and types
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy
	@$(BIN)/mypy tests
	@$(BIN)/mypy --explicit-package-bases benchmarks

docs: setup ## Render the documentation as web pages, in site/; a broken link is an error
	@UV_PROJECT_ENVIRONMENT=.venv $(BIN)/uv sync --quiet --frozen --inexact --all-extras --group docs
	@scripts/docs.sh
	@echo "site/index.html"

ui: setup ## Start Airflow with its web page; Ctrl-C stops all of it
	@$(BIN)/streamgauge ui configs

spark-env: setup ## Build the environment of another Spark: make spark-env SPARK=4.2.1
	@scripts/spark-env.sh "$(SPARK)"

browser: ## Install headless Chromium for the page's tests, where apt is at hand
	@scripts/install-browser.sh

network: ## Install iproute2 for the tests on several hosts, where apt is at hand
	@scripts/install-iproute.sh

flink: setup ## Install Apache Flink and compile our part (needs a JDK); another one: make flink FLINK=2.2.1
	@[ -e .venvs/flink/.ready ] || echo "installing Flink (350 MB) and compiling our part, in about a minute"
	@scripts/flink.sh $(FLINK)

jvm-link: setup ## Compile the JVM part of Spark's link, for systems with link: jvm (needs a JDK)
	@scripts/jvm-link.sh

kafka: ## Download a Kafka broker, a schema registry, and Kafka connectors of Spark and Flink (docs/kafka.md)
	@[ -e .venvs/kafka/.ready ] || echo "downloading Kafka and its connectors (300 MB), in about a minute"
	@scripts/kafka.sh

environment: setup ## Pack Python's packages for a cluster's executors (docs/clusters.md)
	@scripts/environment.sh

lock: setup ## Resolve the dependencies anew
	@$(BIN)/uv lock --quiet
	@$(MAKE) --no-print-directory requirements

requirements: setup ## Write requirements.txt for plain pip from uv.lock
	@$(BIN)/uv export --quiet --frozen --all-extras --no-default-groups --no-emit-project --no-annotate --output-file requirements.txt

clean: ## Remove what was built and measured
	rm -rf .venv .venvs artifacts dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
