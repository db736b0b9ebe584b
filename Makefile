# make demo   set up .venv and run the main job on the built-in film; ends with the path of a report
# make test   set up .venv and run the tests
# make lint   ruff, mypy --strict, and the layers of the package
# make fuzz   thousands of damaged films, arrays, images, models, results and command lines; CASES=.. SEED=..
# make docs   build the site, docs/_build/html/index.html; a warning is an error
# make dist   build sdist and wheel into dist/, and try the wheel in a clean environment
# make bench  us and the peers in one process: speed and predictions; writes benchmarks/README.md

PYTHON ?= python3
BIN := .venv/bin
COMMA := ,

.PHONY: demo test lint fuzz docs dist bench clean

demo: .venv/ready-run
	$(BIN)/psmt demo

# Tests start many interpreters: bytecode is kept for them even if PYTHONDONTWRITEBYTECODE is set. .ci/run asks for EXTRA=dev.
EXTRA ?= test
test: .venv/ready-$(EXTRA)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST)

lint: .venv/ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Kernels are compiled twice: as they are, and with the bounds of every array checked, in a cache of their own.
CASES ?= 1000
SEED ?= 1
FUZZ = PYTHONPATH=tests $(BIN)/python -m fuzz --cases $(CASES) --seed $(SEED)

fuzz: .venv/ready-dev
	$(FUZZ)
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.venv/bounds-checked $(FUZZ) alterations models commands calls

# -E: pages are read anew, so that nothing but the tree decides.
docs: .venv/ready-docs
	rm -rf docs/api/generated
	$(BIN)/python -m sphinx -q -E -W --keep-going -j auto -b html docs docs/_build/html
	@echo "file://$(CURDIR)/docs/_build/html/index.html"

dist:
	.ci/wheel $(PYTHON)

BENCHMARKS := speed pace prediction frames live

bench: .venv/ready-bench
	for name in $(basename $(notdir $(wildcard $(BENCHMARKS:%=benchmarks/%.py)))); do \
	  $(BIN)/python -m benchmarks.$$name || exit 1; done

# No default install pulls torch: it is an extra. Each stamp stands for a set of extras.
.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "psmt needs Python 3.11 or newer, but $(PYTHON) is $$($(PYTHON) -V 2>&1); use make PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/ready-run: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

# --no-compile halves the time of a large install; Python compiles what is imported. `ready-dev,docs` has both extras.
.venv/ready-%: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -e '.[$*]'
	@touch $(patsubst %,.venv/ready-%,$(subst $(COMMA), ,$*)) $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist docs/_build docs/auto_gallery docs/api/generated
