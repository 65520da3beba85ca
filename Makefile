# Verbs for people. `make` alone lists them.
# An environment that is already there is used with `make VERB PYTHON=python3`; otherwise .venv is made from requirements.txt.
.DEFAULT_GOAL := help
SHELL := /bin/sh

ifeq ($(origin PYTHON),command line)
RUN := $(PYTHON)
READY :=
else
RUN := .venv/bin/python
READY := .venv/.ready
endif
BASE_PYTHON ?= python3

.PHONY: help lab test check browser slides record fresh exercises regress mutate lint FORCE

help:
	@echo 'make lab         set up, then open JupyterLab on notebooks/00_start_here.ipynb'
	@echo 'make test        set up, then everything that CI runs'
	@echo 'make check       before a workshop: is this machine ready? LEARNERS=20 for so many people on it'
	@echo 'make browser     every notebook in JupyterLab in a real browser: runs, moves, can be read by all'
	@echo 'make slides      mark what is a slide in notebooks/'
	@echo 'make record      on a GPU: run all notebooks live, write kit/recordings/'
	@echo 'make fresh       run notebooks/ and solutions/ from the top and store their outputs'
	@echo 'make exercises   make exercises/ from solutions/'
	@echo 'make regress     every claim on several Triton versions; TRITON="3.6.0 3.9.0" names them, KEEP=1 commits to the result'
	@echo 'make mutate      plant faults in a copy, and see that make test would catch each'
	@echo 'make lint        ruff on code and notebooks, and the notebook rules'
	@echo 'VERB PYTHON=python3 uses an environment that is already there.'

lab: $(READY)
	@$(RUN) scripts/lab.py

test: $(READY)
	@$(RUN) scripts/test.py

check: $(READY)
	@$(RUN) scripts/check.py $(if $(LEARNERS),--learners $(LEARNERS))

browser: $(READY)
	@$(RUN) scripts/browse.py

slides: $(READY)
	@$(RUN) scripts/slides.py

record: $(READY)
	@$(RUN) scripts/record.py

fresh: $(READY)
	@$(RUN) scripts/fresh.py

exercises: $(READY)
	@$(RUN) scripts/exercises.py

# Each version is a word of its own; `TRITON=` with nothing behind it is told so.
regress: $(READY)
	@$(RUN) scripts/regress.py $(if $(filter undefined,$(origin TRITON)),,"$(TRITON)")$(if $(KEEP), --keep)

mutate: $(READY)
	@$(RUN) scripts/mutate.py

lint: $(READY)
	@$(RUN) scripts/test.py --only lint

.venv/.ready: requirements.txt pyproject.toml scripts/setup.py $(if $(wildcard .venv/bin/python),,FORCE)
	@command -v $(BASE_PYTHON) >/dev/null 2>&1 || { echo 'setup: no $(BASE_PYTHON) on this machine: install Python 3.11 or newer (Debian: apt-get install python3 python3-venv).' >&2; exit 1; }
	@$(BASE_PYTHON) scripts/setup.py

FORCE:
