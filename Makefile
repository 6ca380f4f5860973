# Two commands matter: `make run` trains Uni-GNN on imbalanced Cora, `make test` runs the tests.
# Both set up everything they need.

PYTHON ?= python3
BIN := .venv/bin
JOBS ?= 2

# A folder of graphs beside the checkout saves the download.
ifneq ($(wildcard ../shared/data),)
export EVENGRAPH_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help install run test smoke release slow attack mutants check format bench docs pictures lock sbom licences lowest clean

help:
	@echo "make run      train Uni-GNN on Cora (3 minority classes, ratio 10%), seeds 5, 6, 7"
	@echo "make test     run the test suite"
	@echo "make smoke    a short check of a bare installation, then of one with all extras"
	@echo "make install  make .venv with the package and its development tools"
	@echo "make check    lint, formatting, types"
	@echo "make bench    print the benchmarks"
	@echo "make docs     build the documentation into site/"
	@echo "make pictures run the example, and draw every picture and notebook from it"
	@echo "make attack   damage files, kill commands and fill disks on purpose, a few minutes"
	@echo "make release  check what a release says: numbers in docs, pictures, versions, locks, the site"
	@echo "make mutants  change a package in many places and see whether its tests notice: ROOM=splits"
	@echo "make slow     run the long tests: stored results again, real downloads"
	@echo "make lock     resolve the development packages again, after a change of pyproject.toml"
	@echo "make sbom     write sbom.json (CycloneDX): every package in .venv"
	@echo "make licences write LICENCES.md: the licence of every package in .venv"
	@echo "make lowest   try the lowest versions that pyproject.toml allows, in .venv-lowest"

install: .venv/.installed

# Every file is checked against the hashes of the lock, and nothing outside of it is installed.
# A CPU build of torch is taken where pip finds one. The default build needs CUDA libraries, too.
PIP_LOCKED := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps
HELP := (echo "The installation stopped half-way: see the lines above. It needs a connection to a package" \
	"index and 6 GB of disk. Then run make install again; make clean starts over." >&2; exit 1)
.venv/.installed: pyproject.toml $(wildcard requirements-*.lock)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| (echo "evengraph needs Python 3.11 or newer; try: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1)
	@echo "Setting up .venv; this takes a minute or two."
	@$(PYTHON) -m venv .venv || (echo "On Debian and Ubuntu: apt install python3-venv." >&2; $(HELP))
	@$(PIP_LOCKED) --require-hashes -r requirements-cpu.lock 2>/dev/null \
		|| echo "No CPU build of torch was found here: the default build is installed, which is larger."
	@$(PIP_LOCKED) --require-hashes -r requirements-dev.lock || $(HELP)
	@if grep -qs "^Requires-Dist: nvidia" .venv/lib/python*/site-packages/torch-*.dist-info/METADATA; then \
		$(PIP_LOCKED) --require-hashes -r requirements-cuda.lock || $(HELP); fi
	@$(PIP_LOCKED) --no-build-isolation -e . || $(HELP)
	@touch $@

# One thread on the CPU, so that the digits are those of docs/reproduction.md whatever the machine has.
run: install
	$(BIN)/evengraph run cora --method unignn --split step --minority 3 --ratio 0.1 --splits 5,6,7 \
		--device cpu --threads 1 --out runs/cora-step

test: install
	$(BIN)/python -m pytest -n $(JOBS)

# What a user installs, in a venv without the development packages, in the locked versions: bare from
# the source distribution, then from the wheel with all extras.
BARE := .venv-bare/bin/python
PIP_BARE := $(BARE) -m pip install --quiet --disable-pip-version-check
smoke: install
	@rm -rf dist && $(BIN)/python -m hatchling build -d dist >/dev/null 2>&1
	$(PYTHON) -m venv --clear .venv-bare
	@sed -n 's/ *\\$$//; s/^torch==.*//; /^[a-z0-9].*==/p' requirements-dev.lock > .venv-bare/constraints.txt
	@$(PIP_BARE) --no-deps --require-hashes -r requirements-cpu.lock 2>/dev/null \
		|| echo "No CPU build of torch was found here: the default build is installed, which is larger."
	$(PIP_BARE) -c .venv-bare/constraints.txt dist/*.tar.gz
	$(BARE) -W ignore -m tools.smoke
	@$(PIP_BARE) --no-deps --force-reinstall dist/*.whl
	$(PIP_BARE) -c .venv-bare/constraints.txt "$$(echo dist/*.whl)[all]"
	$(BARE) -W ignore -m tools.smoke

# What guards numbers, wording and pictures; a change of the code alone need not run it.
release: install
	$(BIN)/python -m pytest -n $(JOBS) release

slow: install
	$(BIN)/python -m pytest -n $(JOBS) -m slow tests release

attack: install
	$(BIN)/python -m attack.fuzz --cases 300
	$(BIN)/python -m attack.kill --kills 50

ROOM ?= splits
mutants: install
	$(BIN)/mutmut run --max-children $(JOBS) "evengraph.$(ROOM)*"
	$(BIN)/mutmut results

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

# The example again, then what is drawn from its run, the notebooks and the desk. Wants Chromium.
pictures: install
	$(BIN)/python docs/example.py
	$(BIN)/python docs/hero.py
	$(BIN)/python docs/badges.py
	$(BIN)/python docs/pictures.py
	$(BIN)/python -m tools.notebooks
	$(BIN)/python -m tools.desk_pictures

lock: install
	$(BIN)/python -m tools.lock

sbom: install
	$(BIN)/cyclonedx-py environment --output-reproducible --output-format JSON \
		--pyproject pyproject.toml --output-file sbom.json $(BIN)/python
	@echo "The SBOM is in sbom.json."

licences: install
	$(BIN)/python -m tools.licences > LICENCES.md

# Not part of CI: it downloads an old torch with its CUDA libraries, some gigabytes.
lowest: install
	$(PYTHON) -m venv --clear .venv-lowest
	$(BIN)/uv pip install --quiet --no-config --python .venv-lowest/bin/python \
		--resolution lowest-direct -e '.[disk,desk,onnx]'
	.venv-lowest/bin/python -W ignore -m tools.smoke

clean:
	rm -rf .venv .venv-bare .venv-lowest sbom.json runs site build dist mutants .mypy_cache .pytest_cache .ruff_cache .hypothesis
