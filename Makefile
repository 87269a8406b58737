# Verbs for people and CI alike; `make help` explains them. Everything is installed into .venv, nothing outside the checkout.
.DEFAULT_GOAL := help
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.PHONY: help setup demo dev test check docs proof proof-long bench pins clean

PYTHON ?=
DATA ?= .minutebook
WORKER ?=
W ?=
N ?=
ARGS ?=
PY := .venv/bin/python
STAMP := .venv/.ready
LANES := --numprocesses 2

help:  ## show this list
	@echo 'minutebook: make VERB [NAME=value]'
	grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 12

setup: $(STAMP)  ## make .venv with every pinned package and Kafka's files (the only verb that needs the network)

$(STAMP): requirements.txt requirements-dev.txt minutebook/embedded/kafka-jars.lock
	@python="$(PYTHON)"
	for candidate in /usr/bin/python3.{11,12,13} python3.{11,12,13} python3; do
	    [ -n "$$python" ] && break
	    if "$$candidate" -c 'import ensurepip, venv, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
	        python="$$candidate"
	    fi
	done
	if [ -z "$$python" ]; then
	    echo 'setup: Python 3.11 or newer with its venv package is missing (Debian: python3 python3-venv). Install it, or' >&2
	    echo 'setup: name one: make setup PYTHON=/path/to/python3.11' >&2
	    exit 1
	fi
	if ! "$$python" -c 'import ensurepip, venv' 2>/dev/null; then
	    echo "setup: $$python cannot make virtual environments. Install its venv package (Debian: python3-venv)." >&2
	    exit 1
	fi
	echo "setup: .venv with $$("$$python" --version)"
	[ -x $(PY) ] || "$$python" -m venv .venv
	echo 'setup: packages (the first time this takes a minute)'
	if ! $(PY) -m pip install --disable-pip-version-check --require-hashes -r requirements-dev.txt; then
	    echo 'setup: a package could not be installed, see above. Check the network and run `make setup` again.' >&2
	    exit 1
	fi
	echo "setup: Kafka's files"
	$(PY) -m minutebook.embedded
	touch $(STAMP)
	echo 'setup: done'

demo: setup  ## a broker, the servers and a worker, here, in a minute or two; shows what a scheduler promises
	@$(PY) -m examples.demo $(ARGS)

dev: setup  ## run everything for development: DATA=folder (.minutebook) WORKER=module:app
	@$(PY) -m minutebook.cli dev --data "$(DATA)" $(if $(WORKER),--worker "$(WORKER)") $(ARGS)

test: setup  ## every test, in two lanes; ARGS='-k name' chooses, in one
	@$(PY) -m pytest $(or $(ARGS),$(LANES))

proof-long: setup  ## what no everyday run has time for: cron rules around every clock change of every zone; the API asked at length
	@$(PY) -m tests.property.every_change
	$(PY) -m tests.api.test_document

check: setup  ## lint, format, types, who imports whom, dependencies
	@$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy --strict minutebook streams api replay bench
	.venv/bin/lint-imports
	.venv/bin/deptry .

docs: setup  ## the documentation as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet
	echo 'docs: build/site/index.html'

proof: setup  ## faults in N=30 rounds of each kind, with figures; the machine should do nothing else meanwhile
	@MINUTEBOOK_ROUNDS="$(or $(N),30)" $(PY) -m pytest -m rounds $(ARGS)

bench: setup  ## measure: W=workload N=size
	@$(PY) -m bench $(W) $(N)

pins: setup  ## resolve pyproject.toml anew into requirements*.txt (for maintainers)
	@export UV_CUSTOM_COMPILE_COMMAND='make pins'
	compile() { .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate pyproject.toml --all-extras "$$@"; }
	compile --upgrade --group servers --output-file requirements.txt
	compile --upgrade --group servers --group dev --constraint requirements.txt --output-file requirements-dev.txt

clean:  ## remove caches and build results; .venv and data folders stay
	@rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage htmlcov
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
