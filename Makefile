# Every target sets up what it needs; `make help` lists them.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full bench lint fuzz accuracy figures clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

setup: $(STAMP)  ## make .venv with Python 3.11 and install the package with its pins (no-op when nothing changed)

$(STAMP): setup.cfg pyproject.toml constraints.txt
	@set -e; python=""; for candidate in $(PYTHON) python3.11 python3 python; do \
	  if "$$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "make setup: Python 3.11 not found. DGL 1.1.3, the partitioner and sampler, has no wheels for newer Pythons. \
	Install it (Debian 12: apt-get install python3.11 python3.11-venv; elsewhere: pyenv install 3.11) or pass PYTHON=/path/to/python3.11." >&2; \
	  exit 2; \
	fi; \
	"$$python" -m venv $(VENV); \
	echo "installing llcg_dist and its pinned dependencies into $(VENV) ..."; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'; \
	touch $(STAMP)

demo: setup  ## train seven methods on the same parts, print one table, save the curves (two minutes)
	PATH="$(CURDIR)/$(BIN):$$PATH" bash launch/demo.sh

figures: setup  ## run the small versions of the paper's figures and draw them into docs/figures
	$(BIN)/python -m studies.figures

lint: setup  ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Tests whose outcome is a matter of bits share the two cores; those that stop, cut or time jobs have them to themselves.
SIDE_BY_SIDE := $(addprefix tests/distributed/test_,$(addsuffix .py,baselines both_statistics demo diagnostics docs_data \
  doctor equivalence figures llcg_plus memory multinode_netns slurm sweep))
ALONE := tests/distributed $(addprefix --ignore=,$(SIDE_BY_SIDE))

test: lint  ## the gate: lint, types, unit tests and real multi-process tests
	$(BIN)/pytest -m "not full" -n 2 --dist loadfile tests/unit tests/fuzz $(SIDE_BY_SIDE)
	$(BIN)/pytest -m "not full" $(ALONE)

test-full: lint  ## everything in test, and the long trials
	$(BIN)/pytest -n 2 --dist loadfile tests/unit tests/fuzz $(SIDE_BY_SIDE)
	$(BIN)/pytest $(ALONE)

fuzz: setup  ## 100,000 damaged inputs: every one loads or ends with our own error
	LLCG_FUZZ_INPUTS=100000 $(BIN)/pytest -n 2 tests/fuzz --timeout 7200

BENCHES := local_step labor_curve exchange rounds startup scale slow_network
bench: setup  ## every ratio of docs/performance.md, measured again (wants an idle machine and root for network namespaces)
	set -e; for part in $(BENCHES); do $(BIN)/python -m bench.$$part; done

DATA ?= data
accuracy: setup  ## the tables of docs/accuracy.md, resumable (DATA=folder with Amazon/ Planetoid/ Hetero/; two hours)
	$(BIN)/python -W ignore -m studies.accuracy --data "$(DATA)"

clean:  ## remove the virtual environment and caches (runs and partitions stay)
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build src/*.egg-info
