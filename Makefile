PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin
DATA ?= data
ARGS ?=
# FORM selects the servers of `make cluster`, `make conformance` and `make neighbours`: `one` process over SQLite, or `four` services over etcd.
# `make cluster` and `make conformance` also accept `stock`, which is kube-apiserver, for comparison.
FORM ?= one
# PROXY selects the proxy on the nodes: `stock` is kube-proxy, and `tetrapod` is `tetrapod proxy`.
PROXY ?= stock
# WORKERS is the number of processes that run tests in parallel. It may exceed the number of cores, because most tests wait for servers.
WORKERS ?= 5
# All tests of a file run on one worker, and the files start in the order of the command line. By default, xdist would start files with few
# tests last. The files of contract and integration have few tests and take longest, so they start first, and the many short files of
# unit then fill the workers.
BY_FILE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PYTEST = $(BIN)/python -m pytest --durations=15 --durations-min=2
# With RETRY=1, as in CI, failed tests are run once more and listed as retried. A test that fails twice fails the run.
RETRY ?=
AGAIN = $(BIN)/python -m pytest --last-failed --last-failed-no-failures=none -rA --show-capture=no --tb=short
# Only exit code 1, which means failed tests, causes the retry. A module that cannot be imported ends the run with another code (tests/conftest.py).
run_tests = $(PYTEST) $(1) $(if $(RETRY),|| { [ $$? = 1 ] && echo "== Retried because they failed once:" && $(AGAIN) $(1); })

# Some shells and images disable bytecode files. Each server that a test starts would then compile a thousand modules, which takes half of its CPU
# time.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run install dev lock lint test test-all test-versions release facts coverage contract contract-http2 fuzz chaos soak stall differential bench bench-envtest scale screenshots e2e e2e-image e2e-arm64 e2e-kind e2e-stock \
	cluster cluster-load cluster-down cluster-soak proxy-states conformance conformance-short upstream upstream-short upstream-kubectl neighbours docs clean generate

## run: install into .venv, and start all services in one process with its data in ./data
run: install
	$(BIN)/tetrapod up --data-dir $(DATA) $(ARGS)

install: $(VENV)/.installed
$(VENV)/.installed: pyproject.toml hatch_build.py requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

# The packages that `make test` needs. The tools for lint, documentation and end-to-end tests take longer to install, and are in `dev`.
$(VENV)/.test: $(VENV)/.installed requirements-test.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -r requirements-test.txt
	touch $@

dev: $(VENV)/.dev
$(VENV)/.dev: $(VENV)/.test requirements-dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -r requirements-dev.txt
	touch $@

## lock: lock the dependencies of pyproject.toml by hash (ARGS=--upgrade: at the newest permitted versions)
lock: dev
	./tools/lock.sh $(ARGS)

## lint: check style (ruff), types (mypy strict) and import directions (import-linter)
lint: dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

## test: install the needed programs, and run the unit, integration and contract tests in parallel, except those marked `long`
test: $(VENV)/.test
	./tools/prepare.sh
	$(PYTEST) $(BY_FILE) -m "not long" tests/contract tests/integration tests/unit

## test-all: run also the long tests, and the end-to-end tests of kubectl, Helm and client libraries (`make e2e` tests images, compose and chart)
test-all: dev
	./tools/prepare.sh browser
	$(call run_tests,$(BY_FILE) tests/contract tests/integration tests/unit)
	$(call run_tests,$(BY_FILE) tests/e2e -m "not buildkit and not containers and not stock and not kind")

## test-versions: run the unit tests with the lowest and with the highest versions that pyproject.toml permits (PYTHON=python3.14: with another Python)
test-versions: dev
	UV=$(BIN)/uv PYTHON=$(if $(filter-out python3,$(PYTHON)),$(PYTHON),$(BIN)/python) ./tools/versions.sh

## release: set the version, and build the files of a release into dist/ without publishing them (VERSION=0.2.0; ARGS='--image linux/amd64,linux/arm64 --sign KEY', --offline: pull no image; CONTRIBUTING.md)
release: dev
	$(BIN)/python tools/release.py $(VERSION) $(ARGS)

## facts: record the Kubernetes version of tools/stock/go.mod, and generate the data from it (docs/reference/versions.md; the first run builds kube-apiserver, which takes minutes)
facts: dev
	./tools/stock.sh >/dev/null
	./tools/etcd.sh >/dev/null
	$(BIN)/python tools/record_kubernetes.py $(ARGS)

## docs: build the documentation site into site/, and fail for a broken link (without --quiet, because mkdocs would not count warnings)
docs: dev
	PYTHONPATH=. NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

## screenshots: write the pictures in docs/images of a terminal and, with a headless Chromium, of the console
screenshots: dev
	./tools/prepare.sh browser
	PYTHONPATH=services:tests $(BIN)/python -m e2e.console.screenshots
	$(BIN)/python tools/terminal_picture.py

## coverage: measure line and branch coverage of the unit and integration tests, in this process and in the servers that they start
coverage: dev
	./tools/prepare.sh
	$(PYTEST) $(BY_FILE) -m "not long" --cov --cov-report=term:skip-covered tests/integration tests/unit

## contract: replay every recorded request, and print the share of equal responses by area
contract: dev
	$(BIN)/python tests/contract/share.py $(ARGS)

## contract-http2: do so over HTTP/2 (`make test` replays some of the scenarios over HTTP/2)
contract-http2: dev
	$(BIN)/python tests/contract/share.py --http2 $(ARGS)

## fuzz: send malformed input of every kind for half an hour (FUZZ_SEED=… repeats a run)
fuzz: dev
	FUZZ_SEED=$${FUZZ_SEED:-$$(shuf -i 2-4000000000 -n 1)} FUZZ_SECONDS=$${FUZZ_SECONDS:-1800} FUZZ_EXAMPLES=$${FUZZ_EXAMPLES:-5000} \
		$(BIN)/python -m pytest tests/integration/robustness -s --timeout=7200

## chaos: inject faults under load, a minute each, and check that nothing was lost (CHAOS_FAULTS="kill-core cut-leader", CHAOS_SECONDS, CHAOS_SEED, CHAOS_HTTP2=1)
chaos: dev
	./tools/prepare.sh faults
	PYTHONPATH=services:tests $(BIN)/python -m chaos

## soak: send mixed traffic for minutes, and check that no process grows with it (SOAK_FORMS, SOAK_SECONDS, SOAK_REPORT=FILE; docs/explanation/reliability.md)
soak: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m soak

## stall: send requests that could stall the server, and write docs/reference/stalls.md (ARGS='--only YAML --forms one': some of them; KUBE_APISERVER: beside kube-apiserver)
stall: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m stall $(ARGS)

## differential: send generated requests to kube-apiserver and Tetrapod, and print each difference once (ARGS='--generators objects --only /pods --count 50'; the first run builds kube-apiserver, which takes minutes)
differential: dev
	./tools/prepare.sh
	./tools/stock.sh >/dev/null
	PYTHONPATH=services:tests $(BIN)/python -m differential $(ARGS)

## bench: measure, and write docs/reference/benchmarks.md with its plots (ARGS=--plots: draw the plots only; KUBE_APISERVER, ETCD: beside kube-apiserver; ARGS='--beside CHECKOUT': beside another tree)
bench: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m bench $(ARGS)

## scale: load servers as a cluster of N nodes does, and write docs/reference/scale.md with its plots (ARGS='cluster --nodes 100'; ARGS=--help: all runs; KUBE_APISERVER: beside kube-apiserver)
scale: dev
	./tools/prepare.sh
	PYTHONPATH=services:tests $(BIN)/python -m scale $(or $(ARGS),cluster)

## bench-envtest: measure the cost of a control plane of envtest, for docs/how-to/testing.md (KUBE_APISERVER, ETCD: beside kube-apiserver)
bench-envtest: dev
	PYTHONPATH=services:tests $(BIN)/python -m bench.envtest

## e2e: test the images, compose and the chart
e2e: dev
	./tools/prepare.sh containers
	$(call run_tests,tests/e2e -m containers)

## e2e-image: test the image of a release for two architectures with SBOM and provenance, and push it to a registry, as root (the first run builds BuildKit and a scanner, which takes minutes)
e2e-image: dev
	./tools/prepare.sh image
	$(call run_tests,tests/e2e -m buildkit)

## e2e-arm64: test the wheel on arm64, if needed in an emulator, as root: a server, kubectl, and unit tests (ARGS=tests/unit/http: others; it takes many minutes)
e2e-arm64: dev
	./tools/prepare.sh image
	PYTHON=$(BIN)/python ./tools/arm64.sh $(ARGS)

## e2e-kind: test the chart on a kind cluster by docs/how-to/kind.md, as root; if no node image can be pulled, build one, which takes minutes
e2e-kind: dev
	./tools/prepare.sh containers
	$(BIN)/python -m pytest tests/e2e/hosted -m kind -rs

## e2e-stock: test upstream's own components over Tetrapod, on simulated and on real nodes, and the chart there (the first run builds them, which takes minutes)
e2e-stock: dev
	./tools/prepare.sh containers
	./tools/stock.sh >/dev/null
	PYTHONPATH=services:tests $(BIN)/python -m cluster build
	$(call run_tests,tests/e2e/stock tests/e2e/hosted -m stock)

## cluster: start two nodes on this machine over Tetrapod, as root (FORM=four: four services over etcd; PROXY=tetrapod: `tetrapod proxy`; docs/how-to/cluster.md)
cluster: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster up --form $(FORM) --proxy $(PROXY)

## cluster-load: copy images of Docker to the nodes of `make cluster` (IMAGES="a:1 b:1")
cluster-load: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster load $(IMAGES)

## cluster-down: stop `make cluster`, and check that no process, mount or network of it is left
cluster-down: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster down

## cluster-soak: change workloads of the cluster and restart each of its programs, as root, and write docs/reference/cluster-soak.md (FORM=four; ARGS='--minutes 20')
cluster-soak: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster_soak --form $(FORM) $(ARGS)

## proxy-states: compare the rules of `tetrapod proxy` with kube-proxy's over generated states, as root (ARGS='--seed 7 --cases 50')
proxy-states: dev
	PYTHONPATH=services:tests $(BIN)/python -m cluster build
	PYTHONPATH=services:tests $(BIN)/python -m proxy_states $(ARGS)

## conformance: run upstream's conformance suite on two nodes, as root, and write docs/reference/conformance.md (FORM=four; ARGS='--sigs auth,cli': some specs; all take an hour)
conformance: dev
	PYTHONPATH=services:tests $(BIN)/python -m conformance --form $(FORM) --proxy $(PROXY) $(ARGS)

## conformance-short: run 20 specs of the conformance suite (the first run builds it, which takes minutes)
conformance-short: dev
	$(MAKE) conformance ARGS=--short

## upstream: run upstream's integration suites over Tetrapod, and write docs/reference/upstream-suites.md (ARGS='--only auth,client': some packages; all take hours)
upstream: dev
	PYTHONPATH=services:tests $(BIN)/python -m upstream $(ARGS)

## upstream-kubectl: run upstream's tests of kubectl over Tetrapod (ARGS='run_pod_tests run_wait_tests': some of them; all take a quarter of an hour, and the first run builds programs)
upstream-kubectl: dev
	./tools/test_cmd.sh $(ARGS)

## neighbours: run controllers and API servers of other projects over Tetrapod, each with a task of its own (FORM=four: over four services; the first run builds them, which takes up to an hour)
neighbours: dev
	./tools/prepare.sh
	./tools/stock.sh >/dev/null
	FORM=$(FORM) $(PYTEST) tests/neighbours

## upstream-short: run three packages of the integration suites, and fail for each new failure (the first run builds them, which takes minutes)
upstream-short: dev
	$(MAKE) upstream ARGS=--short

clean:
	rm -rf $(VENV) dist build
