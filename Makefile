# The everyday commands; `make` lists them. Everything is set up in .venv by the first one that needs it.

PYTHON ?= python3
TEST_JOBS ?= 3
LOCALSTACK_PORT ?= 4566
INPUTS ?= 100000
ROUNDS ?= 100
BENCHMARKS ?= $(wildcard benchmarks/*.py)
SEEDS ?= 1000
FIRST ?= 0
JOBS ?= $(shell nproc)

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.kainite-set-up
PEERS := $(VENV)/peers

# amazon-kclpy's build fetches 70 MB of jars that Kainite replaces, from the address in this variable.
# A "data:" address answers each request with a few bytes, so the package installs without them.
export KCL_MVN_REPO_SEARCH_URL := data:,

simulation = PYTHONHASHSEED=0 PYTHONPATH=tests $(BIN)/python -m simulation --jobs $(JOBS)

.DEFAULT_GOAL := help
.PHONY: help preflight setup peers demo test simulate simulate-mutations localstack localstack-stop test-localstack test-long test-pythons check format fuzz validate bench pins docs clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

preflight:
	@tools/preflight $(PYTHON)

setup: preflight $(STAMP) ## Set up what is missing

$(STAMP): pyproject.toml constraints.txt | preflight
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt uv
	@echo "kainite: installing packages into $(VENV)"
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --constraint constraints.txt --editable '.[dev]'
	@touch $@

peers: setup $(PEERS)/.set-up ## Set up what tests run against: Java KCL, Node.js children, a Kinesis double

$(PEERS)/.set-up: tools/peers
	@tools/peers $(BIN) $(PEERS)
	@touch $@

demo: setup ## Run the whole way on embedded parts: make demo DEMO="--seconds 30 --kill"
	$(BIN)/kainite demo $(DEMO)

test: peers ## Run all tests: make test TESTS="tests/kainite -k lease"
	$(BIN)/pytest -n $(TEST_JOBS) --dist loadgroup $(TESTS)

localstack: setup ## Start LocalStack without Docker and print its endpoint: make localstack LOCALSTACK_PORT=4567
	@$(BIN)/python -m localstack.host start --port $(LOCALSTACK_PORT)

localstack-stop: setup ## Stop it
	@$(BIN)/python -m localstack.host stop

test-localstack: peers ## Run the tests that need LocalStack, which they start themselves
	$(BIN)/pytest -n 2 --dist loadgroup -m localstack $(TESTS)

test-long: peers ## Run the tests that take minutes: Spark clusters, hosts killed together, a demo
	$(BIN)/pytest -n 0 -m long $(TESTS)

test-pythons: ## Run the daemon's tests on each Python of this machine: make test-pythons TESTS=tests/kainite/child
	@tools/pythons $(TESTS)

simulate: setup ## Run the simulator: make simulate SEEDS=5000 FIRST=20000
	$(simulation) --first $(FIRST) --seeds $(SEEDS) --aim each --keep-going

simulate-mutations: setup ## Show that the simulator notices each safeguard that is switched off
	$(simulation) --mutations
	$(simulation) --tested

check: setup ## Lint, check the format, the imports between rooms and the types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/mypy conftest.py

format: setup ## Put the sources into the house format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

validate: setup ## Run the log for applications under chaos for long: make validate ROUNDS=100
	KAINITE_VALIDATE_ROUNDS=$(ROUNDS) $(BIN)/pytest -n $(TEST_JOBS) tests/kainite/waltz -k under_chaos

fuzz: peers ## Feed broken bytes to whatever reads bytes from outside: make fuzz INPUTS=100000
	KAINITE_FUZZ_INPUTS=$(INPUTS) $(BIN)/pytest -n $(TEST_JOBS) tests/fuzz -k broken_input

bench: setup ## Run the benchmarks: make bench BENCHMARKS=benchmarks/apply.py
	@for benchmark in $(BENCHMARKS); do echo "== $$benchmark"; $(BIN)/python $$benchmark || exit 1; done

docs: setup ## Write the generated pages of docs/ anew
	$(BIN)/python tools/settings_docs.py
	$(BIN)/python tools/metrics_docs.py
	$(BIN)/python tools/aws_policies.py

pins: setup ## Pin the newest versions of all packages in constraints.txt
	@{ sed '/^[^#]/,$$d' constraints.txt; $(BIN)/uv pip compile pyproject.toml --extra dev --universal \
	    --python-version 3.11 --upgrade --no-header --no-annotate --no-emit-index-url --quiet; } > constraints.new
	@mv constraints.new constraints.txt

clean: ## Remove what the other commands made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
