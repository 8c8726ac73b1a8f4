PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DATA ?= data
ARGS ?=
# The form of Tetrapod in `make cluster`, `make conformance` and `make neighbours`: one process over SQLite, or four services over etcd.
# The first two know `stock` too: kube-apiserver, for comparison.
FORM ?= one
# The proxy on the nodes: kube-proxy (stock), or `tetrapod proxy` (tetrapod).
PROXY ?= stock
# Processes that run tests side by side. Most tests wait for servers, so that there may be more of them than cores.
WORKERS ?= 5
# A file stays on one worker. Without this order, xdist runs files of few tests last, and those of contract and integration are
# the longest: they run first, and the many short files of unit then fill the workers.
BY_FILE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PYTEST = $(BIN)/python -m pytest --durations=15 --durations-min=2
# RETRY=1, as in CI: tests that fail are run once more, and listed as retried. A test that fails twice fails the run.
RETRY ?=
AGAIN = $(BIN)/python -m pytest --last-failed --last-failed-no-failures=none -rA --show-capture=no --tb=short
# Only failed tests (exit code 1) are: a module that cannot be imported ends the run with another code (tests/conftest.py).
run_tests = $(PYTEST) $(1) $(if $(RETRY),|| { [ $$? = 1 ] && echo "== Retried because they failed once:" && $(AGAIN) $(1); })

# Some shells and images forbid bytecode: each server that a test starts would compile a thousand modules, half of its CPU time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run install dev lock lint test test-all test-versions release facts coverage contract contract-http2 fuzz chaos soak stall differential bench bench-envtest scale screenshots e2e e2e-image e2e-arm64 e2e-kind e2e-stock \
	cluster cluster-load cluster-down cluster-soak proxy-states conformance conformance-short upstream upstream-short neighbours docs clean generate

## run: install into .venv and start everything in one process (data in ./data)
run: install
	$(BIN)/tetrapod up --data-dir $(DATA) $(ARGS)

install: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml hatch_build.py requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

# What `make test` needs, without the tools of lint, documentation and end-to-end tests, whose installation takes longer.
$(VENV)/.test: $(VENV)/.installed requirements-test.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -r requirements-test.txt
	touch $@

dev: $(VENV)/.dev
$(VENV)/.dev: $(VENV)/.test requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -r requirements-dev.txt
	touch $@

## lock: write down what pyproject.toml needs, by hash (ARGS=--upgrade: newer versions where it leaves a choice)
lock: dev
	./tools/lock.sh $(ARGS)

## lint: ruff, mypy strict, import directions
lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

## test: unit, integration and contract tests but the long ones, in parallel; installs what it needs
test: $(VENV)/.test
	./tools/prepare.sh
	$(PYTEST) $(BY_FILE) -m "not long" tests/contract tests/integration tests/unit

## test-all: `make test`, the long tests, and kubectl, Helm and client libraries end to end; images, compose and chart are `make e2e`
test-all: dev
	./tools/prepare.sh browser
	$(call run_tests,$(BY_FILE) tests/contract tests/integration tests/unit)
	$(call run_tests,$(BY_FILE) tests/e2e -m "not buildkit and not containers and not stock and not kind")

## test-versions: the unit tests with the lowest and the highest versions that pyproject.toml permits (PYTHON=python3.14: of another Python)
test-versions: dev
	UV=$(BIN)/uv PYTHON=$(if $(filter-out python3,$(PYTHON)),$(PYTHON),$(BIN)/python) ./tools/versions.sh

## release: set the version, build what is published into dist/, and publish nothing (VERSION=0.2.0; ARGS='--image linux/amd64,linux/arm64 --sign KEY', --offline: pull no image; CONTRIBUTING.md)
release: dev
	$(BIN)/python tools/release.py $(VERSION) $(ARGS)

## facts: record the Kubernetes version of tools/stock/go.mod, and generate the data from it; docs/reference/versions.md (the first run builds kube-apiserver: minutes)
facts: dev
	./tools/stock.sh >/dev/null
	./tools/etcd.sh >/dev/null
	$(BIN)/python tools/record_kubernetes.py $(ARGS)

## docs: build the documentation site into site/; a link that leads nowhere fails (with --quiet, mkdocs would not count warnings)
docs: dev
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

## screenshots: the pictures of a terminal and, by a headless Chromium, of the console in docs/images
screenshots: dev
	./tools/prepare.sh browser
	PYTHONPATH=services:tests $(BIN)/python -m e2e.console.screenshots
	$(BIN)/python tools/terminal_picture.py

## coverage: line and branch coverage of the unit and integration tests, in this process and in the servers that they start
coverage: dev
	./tools/prepare.sh
	$(PYTEST) $(BY_FILE) -m "not long" --cov --cov-report=term:skip-covered tests/integration tests/unit

## contract: replay every recorded exchange and print the share per area
contract: dev
	$(BIN)/python tests/contract/share.py $(ARGS)

## contract-http2: the same over HTTP/2; the tests replay some of the scenarios so
contract-http2: dev
	$(BIN)/python tests/contract/share.py --http2 $(ARGS)

## fuzz: bad input of every kind for half an hour (FUZZ_SEED=… tries a run again)
fuzz: dev
	FUZZ_SEED=$${FUZZ_SEED:-$$(shuf -i 2-4000000000 -n 1)} FUZZ_SECONDS=$${FUZZ_SECONDS:-1800} FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-5000} \
		$(BIN)/python -m pytest tests/integration/robustness -s --timeout=7200

## chaos: faults under load, a minute each, and a proof that nothing was lost (CHAOS_FAULTS="kill-core cut-leader", CHAOS_SECONDS, CHAOS_SEED, CHAOS_HTTP2=1)
chaos: dev
	./tools/prepare.sh faults
	PYTHONPATH=services:tests $(BIN)/python -m chaos

## soak: mixed traffic for minutes, and a check that no process grows with it (SOAK_FORMS, SOAK_SECONDS, SOAK_REPORT=FILE; docs/explanation/reliability.md)
soak: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m soak

## stall: requests that could stall the server, and docs/reference/stalls.md (ARGS='--only YAML --forms one': a part; KUBE_APISERVER: beside the real one)
stall: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m stall $(ARGS)

## differential: generated requests to kube-apiserver and Tetrapod, and each difference once (ARGS='--generators objects --only /pods --count 50'; the first run builds kube-apiserver: minutes)
differential: dev
	./tools/prepare.sh
	./tools/stock.sh >/dev/null
	PYTHONPATH=services:tests $(BIN)/python -m differential $(ARGS)

## bench: measure, and write docs/reference/benchmarks.md with its plots (ARGS=--plots: draw the plots only; KUBE_APISERVER, ETCD: beside the real one; ARGS='--beside CHECKOUT': beside another tree)
bench: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m bench $(ARGS)

## scale: load servers as a cluster of N nodes does, and write docs/reference/scale.md with its plots (ARGS='cluster --nodes 100'; ARGS=--help: all runs; KUBE_APISERVER: beside the real one)
scale: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m scale $(or $(ARGS),cluster)

## bench-envtest: what a control plane of envtest costs, as in docs/how-to/testing.md (KUBE_APISERVER and ETCD: stock beside it)
bench-envtest: dev
	PYTHONPATH=services:tests $(BIN)/python -m bench.envtest

## e2e: images, compose and the chart
e2e: dev
	./tools/prepare.sh containers
	$(call run_tests,tests/e2e -m containers)

## e2e-image: the image of a release for two architectures with SBOM and provenance, and a registry with it, as root (the first run builds BuildKit and a scanner: minutes)
e2e-image: dev
	./tools/prepare.sh image
	$(call run_tests,tests/e2e -m buildkit)

## e2e-arm64: the wheel on arm64, where needed in an emulator, as root: a server, kubectl, and unit tests (ARGS=tests/unit/http: others; many minutes)
e2e-arm64: dev
	./tools/prepare.sh image
	PYTHON=$(BIN)/python ./tools/arm64.sh $(ARGS)

## e2e-kind: the chart on a kind cluster, and docs/how-to/kind.md; where no node image can be pulled, one is made (as root; minutes)
e2e-kind: dev
	./tools/prepare.sh containers
	$(BIN)/python -m pytest tests/e2e/hosted -m kind -rs

## e2e-stock: upstream's own components over Tetrapod, on simulated and on real nodes, and the chart there (the first run builds them: minutes)
e2e-stock: dev
	./tools/prepare.sh containers
	./tools/stock.sh >/dev/null
	PYTHONPATH=services:tests $(BIN)/python -m cluster build
	$(call run_tests,tests/e2e/stock tests/e2e/hosted -m stock)

## cluster: two nodes on this machine over Tetrapod, as root (FORM=four: four services over etcd; PROXY=tetrapod: our proxy; docs/how-to/cluster.md)
cluster: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster up --form $(FORM) --proxy $(PROXY)

## cluster-load: copy images of Docker to its nodes (IMAGES="a:1 b:1")
cluster-load: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster load $(IMAGES)

## cluster-down: end it, and check that nothing is left of it
cluster-down: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster down

## cluster-soak: the cluster under churn and restarts of every program, as root, and docs/reference/cluster-soak.md (FORM=four; ARGS='--minutes 20')
cluster-soak: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster_soak --form $(FORM) $(ARGS)

## proxy-states: the rules of `tetrapod proxy` beside kube-proxy's over generated states, as root (ARGS='--seed 7 --cases 50')
proxy-states: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster build
	PYTHONPATH=services:tests $(BIN)/python -m proxy_states $(ARGS)

## conformance: upstream's conformance suite on two nodes, as root, and docs/reference/conformance.md (FORM=four; ARGS='--sigs auth,cli': some; an hour for all)
conformance: dev
	PYTHONPATH=services:tests $(BIN)/python -m conformance --form $(FORM) --proxy $(PROXY) $(ARGS)

## conformance-short: 20 specs of it (the first run builds them: minutes)
conformance-short: dev
	$(MAKE) conformance ARGS=--short

## upstream: upstream's integration suites over Tetrapod, and docs/reference/upstream-suites.md (ARGS='--only auth,client': some; hours for all)
upstream: dev
	PYTHONPATH=services:tests $(BIN)/python -m upstream $(ARGS)

## neighbours: controllers and API servers of other projects over Tetrapod, each with a task of its own (FORM=four: over four services; the first run builds them: up to an hour)
neighbours: dev
	./tools/prepare.sh
	./tools/stock.sh >/dev/null
	FORM=$(FORM) $(PYTEST) tests/neighbours

## upstream-short: three packages of them, which must not fail where they have not before (the first run builds them: minutes)
upstream-short: dev
	$(MAKE) upstream ARGS=--short

clean:
	rm -rf $(VENV) dist build
