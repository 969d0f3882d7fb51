SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV   ?= .venv
EXTRAS ?= azure,fast,video
PY      := $(VENV)/bin/python
VGBENCH := $(VENV)/bin/vgbench
STAMP   := $(VENV)/.vgbench-setup

SCENES  ?= raw_scenes
OUT     ?= build/vgbench
RECIPE  ?=
WORKERS ?=
SEED    ?=

# Real captures for tests, where they stand beside the checkout; without them those tests are skipped with a reason.
CAPTURES ?= $(wildcard ../shared/captures)
TEST_WORKERS ?= 2
TESTS ?= tests
# One thread per test process: on few cores more threads only wait for each other.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(if $(CAPTURES),VGBENCH_CAPTURES="$(abspath $(CAPTURES))")

.PHONY: help setup vgbench scenes test test-all check format bench docs clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '%s\n' '' \
	  'Variables of `make vgbench` (and their defaults):' \
	  '  SCENES=$(SCENES)   OUT=$(OUT)   RECIPE (the default recipe)   WORKERS (all cores)   SEED (the recipe'"'"'s)' \
	  'Example: make vgbench SCENES=../shared/captures WORKERS=2'

setup: $(STAMP) ## Make .venv from nothing but python3 and install the tested versions

$(STAMP): pyproject.toml constraints.txt tools/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" EXTRAS="$(EXTRAS)" bash tools/setup.sh
	@touch $@

vgbench: setup ## Build the benchmark from SCENES into OUT, then verify every answer
	$(VGBENCH) build $(RECIPE) --scenes "$(SCENES)" --out "$(OUT)" \
	  $(if $(WORKERS),--workers $(WORKERS)) $(if $(SEED),--seed $(SEED))
	$(VGBENCH) verify "$(OUT)" --scenes "$(SCENES)"

scenes: setup ## List what is under SCENES, with the health of every scene
	@$(VGBENCH) scenes "$(SCENES)"

test: setup ## Run the tests (no network, no GPU)
	$(TEST_ENV) $(PY) -m pytest -n $(TEST_WORKERS) $(TESTS)

test-all: setup ## Run the slow and Ray tests as well
	$(TEST_ENV) $(PY) -m pytest -n $(TEST_WORKERS) -m "not live" $(TESTS)

check: setup ## The whole gate: format, lint, strict types over source and tests, tests with the layer rule
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	@$(MAKE) test

format: setup ## Format the code and mend what the linter can mend
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench: setup ## Measure speed and memory (figures on the terminal)
	$(if $(CAPTURES),VGBENCH_CAPTURES="$(abspath $(CAPTURES))") $(PY) -m bench

docs: setup ## Write docs/data-dictionary.md anew from the schema
	@mkdir -p docs
	$(PY) -m vgbench_gen.store.dictionary > docs/.data-dictionary.md
	@mv docs/.data-dictionary.md docs/data-dictionary.md

# OUT goes only if it is a build (has a manifest) and holds no model replies or votes, which cost money to get again.
clean: ## Remove caches and the built dataset in OUT
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .coverage .coverage.* dist
	find vgbench_gen tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -d "$(OUT)/replies" ] || [ -d "$(OUT)/votes" ]; then \
	  echo "kept $(OUT): it holds replies or votes; remove it by hand if they may go"; \
	elif [ -e "$(OUT)/manifest.json" ]; then rm -rf "$(OUT)"; echo "removed $(OUT)"; fi
