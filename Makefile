SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV   ?= .venv
PY      := $(VENV)/bin/python
VGBENCH := $(VENV)/bin/vgbench
STAMP   := $(VENV)/.vgbench-setup
EXTRAS_STAMP := $(VENV)/.vgbench-extras
DEV_STAMP := $(VENV)/.vgbench-dev

SCENES  ?= raw_scenes
RECIPE  ?= vgbench
WORKERS ?=
ENGINE  ?=
ADDRESS ?=
SEED    ?=
ALLOW_SHORT ?=
ONLY    ?=
MODEL   ?=
BANK    ?= bank.toml
N       ?= 8
STRATEGY ?= default
DEMO    ?= build/demo
TOURS   ?= build/tours
REPO    ?=
RULE    ?= demo
DRY_RUN ?=

NAMED = $(if $(OUT),"$(OUT)")
HOW := $(if $(WORKERS),--workers $(WORKERS)) $(if $(ENGINE),--engine $(ENGINE)) $(if $(ADDRESS),--address $(ADDRESS))

# Real captures and recordings for tests, where they stand beside the checkout; without them those tests are skipped with a
# reason.
CAPTURES ?= $(wildcard ../shared/captures)
RECORDINGS ?= $(wildcard ../shared/recordings)
TEST_WORKERS ?= 3
TESTS ?= tests
CASES ?= 10000
# One thread per test process: on few cores more threads only wait for each other.
# Bytecode is kept even where PYTHONDONTWRITEBYTECODE is set: rewriting all assertions takes each process 10 s.
TEST_ENV := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(if $(CAPTURES),VGBENCH_CAPTURES="$(abspath $(CAPTURES))") \
  $(if $(RECORDINGS),VGBENCH_RECORDINGS="$(abspath $(RECORDINGS))")

.PHONY: help setup extras dev lock browser servers audit browse review paraphrase distractors eval hard publish harnesses trainers train-demo vgbench wide demo samples tours scenes test test-all test-harnesses fuzz check format bench docs clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '%s\n' '' \
	  'Variables of `make vgbench` (and their defaults):' \
	  '  SCENES=$(SCENES)   OUT=build/vgbench   RECIPE=$(RECIPE)   WORKERS (all cores)   ENGINE (local, or ray with ADDRESS)   SEED (the recipe'"'"'s)' \
	  '  ALLOW_SHORT=1 writes what there is where the scenes cannot fill the recipe' \
	  'Example: make vgbench SCENES=/data/scans RECIPE=default WORKERS=2'

setup: $(STAMP) ## Make .venv from nothing but python3 and install the tested versions (SYSTEM_PACKAGES=1: by apt, too)
extras: $(EXTRAS_STAMP) ## Add Ray, Croissant metadata for the Hub, MCP, sign-in to Azure and reading Excel files
dev: $(DEV_STAMP) ## Add what tests, checks and documentation need

INSTALL = PYTHON="$(PYTHON)" VENV="$(VENV)" bash tools/setup.sh

$(STAMP): pyproject.toml constraints.txt tools/setup.sh tools/packages.sh
	@$(INSTALL)
	@touch $@

$(EXTRAS_STAMP): $(STAMP)
	@PART=extras $(INSTALL)
	@touch $@

$(DEV_STAMP): $(STAMP)
	@PART=dev $(INSTALL)
	@touch $@

lock: $(STAMP) ## Write constraints.txt anew after a change of pyproject.toml; UPGRADE=1 takes the newest versions
	@VENV="$(VENV)" bash tools/lock.sh $(if $(UPGRADE),--upgrade)

vgbench wide demo: $(if $(filter ray,$(ENGINE)),extras)

# If OUT is not given, the other targets take the most recent build, and print its name.
vgbench clean: OUT ?= build/vgbench

# A folder with nothing but the README and samples of ours (whole or not) has no scans of the user's in it.
vgbench: setup ## Build the benchmark from SCENES (sample scenes where it is empty) into OUT, verify every answer, audit; says where to look
	@if [ -d "$(SCENES)" ] && [ -z "$$(find "$(SCENES)" -mindepth 1 -maxdepth 1 ! -name README.md ! -name '.*' \
	  ! -name 'samples-*' -print -quit)" ]; then \
	  echo "No scans of yours in $(SCENES): making the sample scenes there first, as far as they are missing."; \
	  $(MAKE) samples; fi
	@$(VGBENCH) build $(RECIPE) --scenes "$(SCENES)" --out "$(OUT)" --check $(HOW) $(if $(SEED),--seed $(SEED)) \
	  $(if $(ALLOW_SHORT),--allow-short)

wide: samples tours ## Build all question kinds except route_turns and object_size from sample scenes and tours into OUT (build/wide), verify and audit
	@$(VGBENCH) build wide --scenes "$(SCENES)" --scenes "$(TOURS)" --out "$(or $(OUT),build/wide)" --check --allow-short $(HOW)

audit: setup ## Audit the dataset in OUT: shortcuts in text, duplicates, classical solvers
	$(VGBENCH) audit $(NAMED) $(if $(WORKERS),--workers $(WORKERS))

browse: setup ## Write a website with every question of OUT; opens from disk
	$(VGBENCH) browse $(NAMED) $(if $(wildcard $(SCENES)),--scenes "$(SCENES)")

paraphrase: setup ## Have MODEL reword the templates into BANK, checked (its key from the environment)
	$(VGBENCH) paraphrase $(if $(MODEL),--model "$(MODEL)") --n $(N) --bank "$(BANK)"

distractors: setup ## Replace the wrong options of OUT by STRATEGY and SEED, in a new folder next to it
	$(VGBENCH) distractors $(NAMED) --strategy $(STRATEGY) --seed $(or $(SEED),1) $(if $(MODEL),--model "$(MODEL)") $(if $(WORKERS),--workers $(WORKERS))

eval: setup ## Score the baselines (and MODEL) on OUT: tables, and a page with plots
	$(VGBENCH) eval $(NAMED) --model baseline:random --model baseline:constant --model baseline:blind \
	  --model baseline:solvers --model baseline:truth $(if $(MODEL),--model "$(MODEL)")
	$(VGBENCH) compare $(NAMED)

hard: setup ## Choose OUT's hard questions: RULE=demo runs scripted models first, RULE=paper uses the saved replies
	$(VGBENCH) vote $(NAMED) --rule "$(RULE)" $(if $(filter demo,$(RULE)),--ask) $(if $(SEED),--seed $(SEED)) \
	  $(if $(WORKERS),--workers $(WORKERS))

publish: extras ## Write OUT in the Hub's format and upload it to REPO; DRY_RUN=1 writes and test-loads it, and uploads nothing
	$(VGBENCH) publish $(NAMED) $(if $(REPO),--repo "$(REPO)") $(if $(DRY_RUN),--dry-run) $(if $(HARD),--hard "$(HARD)") $(if $(TRAIN),--train "$(TRAIN)")

review: setup ## Have people review questions of OUT in a browser
	$(VGBENCH) review $(NAMED)

samples: setup ## Render the sample scenes into SCENES (minutes; resumes where it stopped)
	$(VGBENCH) samples --out "$(SCENES)" $(if $(WORKERS),--workers $(WORKERS))

tours: setup ## Render rooms in which the camera turns full circle into TOURS, for question kinds about labeled objects
	$(VGBENCH) samples --out "$(TOURS)" --frames 30 --count tour=32 $(if $(WORKERS),--workers $(WORKERS))

demo: setup ## See it work in a few minutes: some sample scenes, 240 questions, verified and audited
	$(VGBENCH) samples --small --out "$(DEMO)-scenes" $(if $(WORKERS),--workers $(WORKERS))
	$(VGBENCH) build vgbench-mini --scenes "$(DEMO)-scenes" --out "$(DEMO)" --check $(HOW)
	@echo 'To use the program in this shell: source $(VENV)/bin/activate'

scenes: setup ## List the scenes in SCENES, and check their poses and depth
	@$(VGBENCH) scenes "$(SCENES)"

browser: ## Install Chromium, in which the pages are tested, and axe-core
	@bash tools/browser.sh

servers: setup ## Install the servers that tests start, in environments of their own (.venv-litellm, .venv-servers)
	@VENV="$(VENV)" $(if $(filter undefined,$(origin SERVERS)),,SERVERS="$(SERVERS)") bash tools/servers.sh

harnesses: setup ## Install other people's harnesses, in environments of their own, to test exports against (GBs; not part of test)
	@VENV="$(VENV)" bash tools/inspect.sh
	@VENV="$(VENV)" bash tools/harnesses.sh

trainers: setup ## Install trainers, in environments of their own, to test training files against (GBs; TRAINERS=trl; not part of test)
	@VENV="$(VENV)" $(if $(filter undefined,$(origin TRAINERS)),,TRAINERS="$(TRAINERS)") bash tools/trainers.sh

train-demo: dev ## Build, mix, export, check and load training rows, then train 20 steps on a CPU (minutes; more with `make trainers`)
	@VENV="$(VENV)" DEMO="$(DEMO)" bash tools/train_demo.sh

# Local models and transformers' server need torch, which is not in .venv.
TEST_SERVERS := if [ -x .venv-servers/bin/python ]; then \
  $(TEST_ENV) .venv-servers/bin/python -m pytest -m servers tests/backends tests/agent tests/training; fi

test: dev browser servers ## Run the tests (no network, no GPU)
	$(TEST_ENV) $(PY) -m pytest -n $(TEST_WORKERS) $(TESTS)
	$(if $(filter tests,$(TESTS)),$(TEST_SERVERS))

test-all: dev browser servers ## Run the slow and Ray tests as well
	$(TEST_ENV) VGBENCH_KILLS=12 $(PY) -m pytest -n $(TEST_WORKERS) -m "not live and not servers and not harness" $(TESTS)
	$(if $(filter tests,$(TESTS)),$(TEST_SERVERS))

test-harnesses: dev harnesses ## Run exported tasks in other people's harnesses (minutes)
	$(TEST_ENV) $(PY) -m pytest -m harness tests/publish tests/training tests/evaluation/benchmarks
	@if [ -x .venv-inspect/bin/python ]; then $(TEST_ENV) .venv-inspect/bin/python -m pytest -m "" tests/publish/test_inspect.py \
	  tests/backends/test_inspect_provider.py; fi

fuzz: dev ## Damage 10,000 inputs (CASES) by SEED and see that no promise of docs/security.md breaks
	$(TEST_ENV) $(PY) -m tests.fuzz --cases $(CASES) --seed $(or $(SEED),1) --lanes $(TEST_WORKERS)

check: dev ## The whole gate: format, lint, strict types over source and tests, vulnerabilities and licenses of packages, tests
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	@PY="$(PY)" bash tools/audit_packages.sh
	@$(PY) tools/licenses.py
	@$(MAKE) test

format: dev ## Format the code and fix what the linter can fix
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

golden: dev ## Make everything anew and compare it with the digests in tests/golden; ONLY=part,... for some
	$(TEST_ENV) $(PY) -m tests.golden check $(if $(ONLY),--only "$(ONLY)")

bench: dev ## Measure speed and memory: one table of ratios, goals and verdicts
	$(if $(CAPTURES),VGBENCH_CAPTURES="$(abspath $(CAPTURES))") $(PY) -m bench \
	  $(if $(filter file,$(origin SCENES)),,--scenes "$(SCENES)")

docs: dev ## Write docs/data-dictionary.md, docs/constants.md and docs/howto/import.md anew and build the documentation site into build/site; a warning or a dead link fails
	$(PY) docs/_ext/dictionary.py > docs/.data-dictionary.md
	@mv docs/.data-dictionary.md docs/data-dictionary.md
	$(PY) docs/_ext/constants.py > docs/.constants.md
	@mv docs/.constants.md docs/constants.md
	$(PY) docs/_ext/importers.py > docs/howto/.import.md
	@mv docs/howto/.import.md docs/howto/import.md
	@VENV="$(VENV)" bash tools/docs.sh build/site

# OUT goes only if it is a build (has a manifest) and holds no model replies or votes, which cost money to get again.
clean: ## Remove caches and the built dataset in OUT
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks .coverage .coverage.* dist docs/cli build/site
	find vgbench_gen tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
	@if [ -d "$(OUT)/replies" ] || [ -d "$(OUT)/votes" ]; then \
	  echo "kept $(OUT): it holds replies or votes; remove it by hand if they may go"; \
	elif [ -e "$(OUT)/manifest.json" ]; then rm -rf "$(OUT)"; echo "removed $(OUT)"; fi
