# Two commands: `make fuzz` compares frameworks for a minute, `make test` checks irlang itself.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

# Two processes with two BLAS threads each run slower on two cores than with one each, and a sum's
# order must not depend on the machine.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1
# Both commands start many processes, each of which would compile all modules for itself.
unexport PYTHONDONTWRITEBYTECODE

TARGETS ?= torch,tf,onnxruntime
TIME ?= 60s
WORKERS ?= 3
CHECKED := irlang tests $(wildcard bench)

.PHONY: help setup fuzz test lint format bench clean

help:
	@echo 'make fuzz    generate networks for $(TIME), run them on $(TARGETS), say where they differ'
	@echo 'make test    linter, formatter, type checker, tests'
	@echo 'make bench   ratios against what one would use instead'
	@echo 'make setup   make $(VENV) (the others do it when needed)'
	@echo 'make format  rewrite the code as the formatter wants it'
	@echo 'make clean   remove what tools leave behind; campaigns and $(VENV) stay'

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@test -n '$(PYTHON)' || { \
		echo 'irlang needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python' >&2; exit 2; }
	@echo 'making $(VENV): about 4 GB with the frameworks, a minute or a few'
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install $(shell test -t 2 || echo --quiet) --disable-pip-version-check \
		-c constraints.txt -e '.[all,dev]'
	@touch $@

# Exit status 1 means that there are findings, which is what one fuzzes for.
fuzz: setup
	@$(BIN)/irlang fuzz --targets $(TARGETS) --time $(TIME) $(ARGS) || test $$? -eq 1

# Neighbours share what a file starts: each process gets a stretch of the tests, not every second.
test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(ARGS)

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CHECKED)

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup
	@for file in bench/*.py; do \
		case $$file in */_*) continue;; esac; \
		echo "== $$file"; $(BIN)/python -m bench.$$(basename $$file .py) || exit 1; \
	done

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find irlang tests $(wildcard bench) -name __pycache__ -type d -prune -exec rm -rf {} +
