# Every target does its own set-up: a virtual environment in .venv, made again when pyproject.toml changes.

SEEDS ?= 200
# How long `make fuzz` and `make soak` go on, and `make flood`.
MINUTES ?= 10
SECONDS ?= 30
# What is installed beside rvq itself: `make test EXTRAS=dev,spark` runs the tests of Spark as well, which are large.
EXTRAS ?= dev
# Of what `make sbom` writes the bill: everything that users install.
SBOM_EXTRAS ?= journal,metrics,otel,postgres,seal,spark,top,web
# Tests run side by side where each worker can have a network of its own: as root. Many of them wait most of the time.
WORKERS ?= $(shell [ "$$(id -u)" = 0 ] && command -v ip >/dev/null && echo 3 || echo 1)
SIDE_BY_SIDE := $(if $(filter-out 0 1,$(WORKERS)),--numprocesses $(WORKERS) --dist loadgroup)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# The first interpreter that is new enough. Override with `make PYTHON=/path/to/python test`.
PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

.DEFAULT_GOAL := help
.PHONY: help demo test check lint format fanout simulate model bench flood fuzz soak audit sbom clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY)  ## a sender and three receivers on loopback, one joining, one killed, and the count
	@$(BIN)/rvq demo

test: $(READY)  ## all tests
	@$(BIN)/python -m pytest $(SIDE_BY_SIDE)

check: lint test  ## lint and all tests

lint: $(READY)  ## ruff and mypy --strict
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy --strict rvq

format: $(READY)  ## put imports and layout right
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

fanout: $(READY)  ## the tests with real processes, on a bus without multicast
	@TEST_PEERS=127.0.0.1 $(BIN)/python -m pytest $(SIDE_BY_SIDE) tests/processes

simulate: $(READY)  ## a swarm of simulated worlds: make simulate SEEDS=20000
	@$(BIN)/python -m rvq.sim --seeds $(SEEDS)

model: $(READY)  ## the larger worlds of the model of ownership, with spin: minutes and GiB (docs/model.md)
	@$(BIN)/python -m tests.model.spin

bench: $(READY)  ## the figures of the README, measured here
	@$(BIN)/python -c 'import zmq, nats, redis, matplotlib' 2>/dev/null \
		|| $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[bench]' \
		|| echo "peers that could not be installed are skipped"
	@$(BIN)/python -m bench

flood: $(READY)  ## a stranger floods a bus at work: make flood SECONDS=30
	@$(BIN)/python -m tests.processes.flooding --seconds $(SECONDS)

fuzz: $(READY)  ## every decoder with bent bytes: make fuzz MINUTES=60
	@$(BIN)/python -c 'import atheris' 2>/dev/null \
		|| $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[fuzz]' \
		|| echo "without atheris, which could not be installed"
	@$(BIN)/python -m tests.fuzz --minutes $(MINUTES)

audit: $(READY)  ## look up known holes in what is installed; says so if no advisory service can be reached
	@$(BIN)/python -c 'import pip_audit' 2>/dev/null || $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[audit]'
	@$(BIN)/python tools/audit.py

sbom: $(READY)  ## a bill of materials (CycloneDX) of all that users install, in rvq.cdx.json
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$(SBOM_EXTRAS)]'
	@$(BIN)/python tools/sbom.py --extras $(SBOM_EXTRAS) > rvq.cdx.json
	@echo "wrote rvq.cdx.json"

soak: $(READY)  ## kill, stop, cut and re-key real processes, and account for every message: make soak MINUTES=30 SEED=7
	@$(BIN)/python -m bench.soak --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(if $(RATE),--rate $(RATE))

clean:  ## remove the virtual environment and everything that tools leave behind
	rm -rf $(VENV) build dist *.egg-info rvq.cdx.json .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@if [ -z "$(PYTHON)" ]; then \
		echo "rvq needs Python 3.11 or newer, and found none as python3 or python3.11 to python3.14." >&2; \
		echo "Install one (Debian, Ubuntu: apt install python3 python3-venv), or say where it is: make PYTHON=/path/to/python" >&2; \
		exit 1; fi
	@echo "setting up $(VENV) with $(PYTHON)"
	@"$(PYTHON)" -m venv --clear $(VENV) || { \
		echo "$(PYTHON) could not make a virtual environment (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[$(EXTRAS)]'
	@touch $@
