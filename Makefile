# Every target sets up what it needs; `make help` lists them.
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup demo figures lint test test-unit test-distributed test-python smoke-python test-full fuzz bench accuracy docs release-check clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(STAMP)  ## make .venv (Python 3.11, or the newest tested one there is) and install the package with its pins
	@made_from=$$(sed -n 's/^executable = //p' $(VENV)/pyvenv.cfg); \
	if [ -n "$(PYTHON)" ] && [ "$$("$(PYTHON)" -c 'import os, sys; print(os.path.realpath(sys.executable))' 2>/dev/null)" != "$$(realpath "$$made_from")" ]; then \
	  echo "make setup: PYTHON=$(PYTHON) is not used: $(VENV) is made from $$made_from. To change it: make clean, then make setup again." >&2; \
	fi

$(STAMP): setup.cfg pyproject.toml constraints.txt
	@set -e; python=$$(PYTHON="$(PYTHON)" bash launch/find_python.sh); \
	[ -x $(BIN)/python ] || "$$python" -m venv $(VENV); \
	echo "installing llcg_dist and its pinned dependencies into $(VENV) ($$($(BIN)/python --version)) ..."; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'; \
	$(BIN)/python -c 'from llcg_dist.sampling.compiled import KERNELS; KERNELS.ensure_compiled()'; \
	$(BIN)/python -c 'from llcg_dist.data.stream import KERNELS; KERNELS.ensure_compiled()'; \
	touch $(STAMP)

demo: setup  ## train seven methods on the same parts, print one table, save the curves (two minutes)
	PATH="$(CURDIR)/$(BIN):$$PATH" bash launch/demo.sh

figures: setup  ## run the small versions of the paper's figures and draw them into docs/figures
	$(BIN)/python -m studies.figures

lint: setup  ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Tests whose outcome is a matter of bits share the two cores, a file at a time, in the order of the folders: the long ones
# come first. Those marked alone or performance (setup.cfg) have the cores to themselves.
SIDE_BY_SIDE := $(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder
ALONE := $(BIN)/pytest

test: lint  ## the gate: lint, types, unit tests and real multi-process tests (thirteen to eighteen minutes on two cores)
	$(SIDE_BY_SIDE) -m "not (full or alone or performance)" tests
	$(ALONE) -m "(alone or performance) and not full" tests

test-unit: setup  ## unit and fuzz tests only, without lint (three to four minutes)
	$(SIDE_BY_SIDE) -m "not (full or alone or performance)" tests/unit tests/fuzz

test-distributed: setup  ## real jobs and the code blocks of the pages only, without lint
	$(SIDE_BY_SIDE) -m "not (full or alone or performance)" tests/distributed tests/docs tests/golden
	$(ALONE) -m "alone and not full" tests

# With another Python, in an environment of its own.
OTHER = .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
OTHER_TESTS = $(OTHER)/bin/pytest -n 2 --dist loadfile --no-loadscope-reorder -m "not (full or alone or performance)"
test-python:  ## unit tests and a few real jobs with PYTHON=..., in an environment of its own (.venv-VERSION)
	@[ -n "$(PYTHON)" ] || { echo "make test-python: give PYTHON=/path/to/python3.12" >&2; exit 2; }
	$(MAKE) setup VENV=$(OTHER) PYTHON=$(PYTHON)
	$(OTHER_TESTS) tests/unit tests/distributed/test_equivalence.py tests/distributed/test_resume_in_process.py \
	  tests/distributed/test_models.py

smoke-python:  ## the same in a minute: parts, sampler, a job that resumes
	$(MAKE) setup VENV=$(OTHER) PYTHON=$(PYTHON)
	$(OTHER_TESTS) tests/unit/sampling tests/unit/data/test_parts.py tests/unit/data/test_metis.py tests/golden \
	  tests/distributed/test_resume_in_process.py

test-full: lint  ## everything in test, and the long trials
	$(SIDE_BY_SIDE) -m "not (alone or performance)" tests
	$(ALONE) -m "alone or performance" tests

fuzz: setup  ## 100,000 damaged inputs: every one loads or ends with our own error
	LLCG_FUZZ_INPUTS=100000 $(BIN)/pytest -n 2 tests/fuzz --timeout 7200

BENCHES := $(addprefix bench.,sampling local_step own_model evaluation order exchange star sealing rounds go_on waiting startup scale tables slow_network) studies.labor_curve
bench: setup  ## every ratio of docs/studies/performance.md, measured again (wants an idle machine and root for network namespaces)
	set -e; for part in $(BENCHES); do $(BIN)/python -m $$part; done

DATA ?= data
accuracy: setup  ## the tables of docs/studies/accuracy.md, resumable (DATA=folder with Amazon/ Planetoid/ Hetero/; two hours)
	$(BIN)/python -W ignore -m studies.accuracy --data "$(DATA)"

docs: setup  ## build the documentation site into site/, strictly: a warning or a dead link fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open site/index.html"

release-check:  ## build sdist and wheel, install each outside the checkout and try it (PYTHON=..., RELEASE=folder to keep)
	@python=$$(PYTHON="$(PYTHON)" bash launch/find_python.sh) && "$$python" -m tests.release.check $(RELEASE)

clean:  ## remove the virtual environment and caches (runs and partitions stay)
	rm -rf $(VENV) .venv-3.* .pytest_cache .mypy_cache .ruff_cache .hypothesis build site src/*.egg-info
