# Retrace. `make help` lists what there is. Local runs and CI call the same targets.
PYTHON ?= python3
VENV   ?= .venv
PROJECT ?= .
BIN    := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR: # where Debian lacks python3-venv, `python -m venv` fails and leaves a Python without pip
.PHONY: help setup repro demo test test-all torture mutants bench hub-demo check lock format clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(BIN)/.run ## Make the virtual environment and install what the pipeline needs, pinned

repro: $(BIN)/.run ## Run the pipeline: only what is out of date and not in the remote; the report is reports/report.html
	retrace check
	retrace repro
	@retrace review --base HEAD --brief || true

demo: $(BIN)/.run ## A page on this machine on which all trained models answer side by side
	retrace demo

# Four workers for two cores: a test that waits for a process leaves one idle.
test: $(BIN)/.dev ## Run the tests, but for those marked thorough
	pytest -n 4 --dist loadfile --no-loadscope-reorder -m "not thorough"

test-all: $(BIN)/.dev ## Run all tests
	pytest -n 4 --dist loadfile --no-loadscope-reorder

torture: $(BIN)/.dev ## Malformed input, kills, damage, full disks (as root), two at once, cut remotes, odd places, 200 edits: refused, or the same bytes? Hours
	python -m tests.campaigns.bad_input
	python -m tests.campaigns.kills
	python -m tests.campaigns.damage
	python -m tests.campaigns.disks
	python -m tests.campaigns.twice
	python -m tests.campaigns.edits
	python -m tests.campaigns.remotes
	python -m tests.campaigns.places
	python -m tests.campaigns.soak

mutants: $(BIN)/.dev ## How many small changes to the code do its tests notice? Hours; pip install cosmic-ray==8.7.0 first
	python benchmarks/mutants.py

bench: $(BIN)/.dev ## Speed, memory and exactness, an hour or more; PROJECT names a clone with real data that was run
	python benchmarks/chance.py
	python benchmarks/growth.py --project $(PROJECT)
	cd $(PROJECT) && python $(CURDIR)/benchmarks/noop.py
	python benchmarks/memory.py
	python benchmarks/full_size.py --share 16
	python benchmarks/tokenising.py --project $(PROJECT)
	python benchmarks/saving.py
	python benchmarks/pretraining.py --project $(PROJECT)
	python benchmarks/fine_tuning.py --project $(PROJECT)

hub-demo: $(BIN)/.dev ## Data from a hub, training, publishing and loading back, on a local hub, in minutes
	demo=$$(mktemp -d) && python -m tests.hub.demo $$demo; code=$$?; rm -rf $$demo; exit $$code

check: $(BIN)/.dev ## Format, lint, types, architecture, spelling
	ruff format --check .
	ruff check .
	pyright
	lint-imports --no-logo
	codespell

lock: ## Rewrite requirements*.lock after a change to requirements*.txt; pip install uv first
	for name in requirements requirements-dev; do \
		grep -v '^torch==\|^-r' $$name.txt | uv pip compile - --quiet --no-deps --generate-hashes --no-annotate \
			--python-version 3.11 --custom-compile-command 'make lock' --output-file $$name.lock || exit; \
	done

format: $(BIN)/.dev ## Format the code
	ruff check --fix .
	ruff format .

clean: ## Remove outputs and the virtual environment; your data and the DVC cache stay
	rm -rf models predictions data/text data/model dvc_plots .retrace $(VENV)
	find data/classification data/question_answering data/checkpoints reports/live -mindepth 1 -maxdepth 1 \
		! -name .gitkeep -exec rm -rf {} +
	find reports -mindepth 1 -maxdepth 1 ! -name live ! -name metrics.json ! -name perplexity.json -exec rm -rf {} +

# Stamp files: a recipe runs again when one of its prerequisites is newer than its stamp.
$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Retrace needs Python 3.11 or newer: make repro PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)

# The locks have the SHA-256 of every package but torch, whose build depends on the machine: a second call adds that.
$(BIN)/.run: requirements.txt requirements.lock pyproject.toml | $(BIN)/python
	sed -n '/^pip==/,/[^\\]$$/p' requirements.lock | $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--require-hashes --no-deps -r /dev/stdin # pip first: Python 3.11's takes half as long again for the others
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -qq -j 0 -x '/tests?/' $(VENV)/lib || true # pip would use one core; a few files are not for this Python
	touch $@

$(BIN)/.dev: requirements-dev.txt requirements-dev.lock $(BIN)/.run
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	touch $@
