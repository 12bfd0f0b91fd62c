# Everything runs in .venv, made on first use.  Needs Python 3.11+, make and a C compiler.

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := -m pip install -qq --disable-pip-version-check
PYTEST := $(BIN)/pytest -n auto --maxprocesses=8 --dist=worksteal

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo serve test test-all search check docs package reproduce bench lock clean

help:  ## Show this list
	@echo "usage: make TARGET [PYTHON=python3.12] [ARGS='...']"
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "  %-9s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: $(VENV)/.installed-demo  ## Install, then show a shield at work
	@$(BIN)/fairshield demo $(ARGS)

serve: $(VENV)/.installed-service  ## Install, then serve a dashboard fed by a biased classifier
	@$(BIN)/fairshield serve --demo $(ARGS)

test: $(VENV)/.installed-dev  ## Run the tests that are not slow, the laws on fewer examples
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not slow" $(ARGS)

test-all: $(VENV)/.installed-dev  ## Run all tests, the laws on all examples
	$(PYTEST) $(ARGS)

search: $(VENV)/.installed-dev  ## Look for counterexamples to the laws: other examples every time
	HYPOTHESIS_PROFILE=search $(PYTEST) -m hypothesis $(ARGS) tests

check: $(VENV)/.installed-dev  ## Lint, format, types, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.installed-docs  ## Build the documentation site: notebooks run, warnings are errors
	$(BIN)/sphinx-build -q -W --keep-going -n -b html $(ARGS) docs build/docs/html
	$(BIN)/python tests/docs/check_site.py build/docs/html
	$(BIN)/python tests/docs/check_search.py build/docs/html
	@echo "Open build/docs/html/index.html"

package: $(VENV)/.installed-dev  ## Build wheel and sdist; install with each extra, on each Python
	$(BIN)/python tests/install/check_packages.py $(ARGS)

reproduce: $(VENV)/.installed-dev  ## Run the paper's experiments (ARGS=--quick: in a minute)
	$(BIN)/fairshield reproduce $(ARGS)

bench: $(VENV)/.installed-dev  ## Run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

lock:  ## Resolve all extras afresh and rewrite constraints.txt (with Python 3.11)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || { \
	    echo "make lock: pins must suit the oldest supported Python; use PYTHON=python3.11" >&2; exit 1; }
	@scratch=$$(mktemp -d) && trap 'rm -rf "$$scratch"' EXIT && \
	    $(PYTHON) -m venv "$$scratch/venv" && \
	    "$$scratch/venv/bin/python" $(PIP_INSTALL) '.[dev]' && \
	    sed '/^[^#]/,$$d' constraints.txt > "$$scratch/lock" && \
	    "$$scratch/venv/bin/python" -m pip freeze --exclude fairshield | \
	        sed 's/^\(torch==[^+]*\)+.*/\1/' >> "$$scratch/lock" && \
	    cat "$$scratch/lock" > constraints.txt
	@echo "Wrote constraints.txt"

clean:  ## Remove the environment, caches and build outputs
	rm -rf $(VENV) build dist demo-output reproduction reproduction-quick .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find . -name .git -prune -o -type d -name __pycache__ -prune -exec rm -rf {} +

# The stamps are newer than what they were made from, so a second call installs nothing.

$(VENV)/.installed-demo: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing fairshield[cli,plot] into $(VENV) ..."
	@$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[cli,plot]'
	@touch $@

$(VENV)/.installed-service: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing fairshield[service,client] into $(VENV) ..."
	@$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[service,client]'
	@touch $@

$(VENV)/.installed-docs: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing fairshield[docs] into $(VENV) ..."
	@$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[docs]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml constraints.txt | $(BIN)/pip
	@echo "Installing fairshield[dev] into $(VENV) ..."
	@$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[dev]'
	@touch $@ $(VENV)/.installed-demo $(VENV)/.installed-service $(VENV)/.installed-docs

# pip is the last thing venv writes: where it stands, the environment is complete.
$(BIN)/pip:
	@command -v $(PYTHON) > /dev/null || { \
	    echo "'$(PYTHON)' not found. Install Python 3.11 or newer, or say where it is: make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "fairshield needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	         "Choose another: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || { \
	    echo "'$(PYTHON)' cannot make virtual environments: its venv module is missing." \
	         "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Creating $(VENV) with $$($(PYTHON) --version) ..."
	@$(PYTHON) -m venv $(VENV)
