# Two commands matter: `make run` trains Uni-GNN on imbalanced Cora, `make test` runs the tests.
# Both set up everything they need.

PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

# A folder of graphs beside the checkout saves the download.
ifneq ($(wildcard ../shared/data),)
export EVENGRAPH_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help install run test slow attack check format bench docs clean

help:
	@echo "make run      train Uni-GNN on Cora (3 minority classes, ratio 10%), seeds 5, 6, 7"
	@echo "make test     run the test suite"
	@echo "make install  make .venv with the package and its development tools"
	@echo "make check    lint, formatting, types"
	@echo "make bench    print the benchmarks"
	@echo "make docs     build the documentation into site/"
	@echo "make attack   damage files, kill commands and fill disks on purpose, a few minutes"
	@echo "make slow     run the long tests: stored results again, real downloads"

install: .venv/.installed

.venv/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| (echo "evengraph needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1)
	@echo "Setting up .venv; this takes a minute or two."
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: install
	$(BIN)/evengraph run cora --method unignn --imbalance step --minority 3 --ratio 0.1 --seeds 5,6,7 --out runs/cora-step

test: install
	$(BIN)/python -m pytest -n $(JOBS)

slow: install
	$(BIN)/python -m pytest -n $(JOBS) -m slow

attack: install
	$(BIN)/python -m attack.fuzz --cases 300
	$(BIN)/python -m attack.kill --kills 50

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: install
	$(BIN)/python -m benchmarks

# The variable silences a notice about another program.
docs: install
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The documentation is in site/index.html."

clean:
	rm -rf .venv runs site build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
