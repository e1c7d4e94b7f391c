# The only entry points. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup setup-tests run test test-long check fix bench docs dist

PYTHON := .venv/bin/python

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 20

setup: ## everything that run and test need: Python packages, runsc, images and their template; safe to repeat
	@tools/setup

setup-tests: ## the same, and Rust for the tests of ForeverVM's Rust client
	@tools/setup --tests

run: setup ## the server, until Ctrl-C; prints its address and what to try first. Options: make run ARGS="--port 9000"
	@$(PYTHON) -m everforge.server serve --welcome $(ARGS)

test: setup-tests check ## every test that a change must pass, on the real engine
	@$(PYTHON) -m pytest

test-long: setup-tests check ## the same for hours: longer models, more rounds, more random kills
	@EVERFORGE_TEST_LONG=1 $(PYTHON) -m pytest

check: .venv/bin/ruff ## style, types, and which way imports point
	@$(PYTHON) tools/make_sync.py --check
	@$(PYTHON) tools/make_help.py --check
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/pyright
	@.venv/bin/lint-imports --no-logo

fix: .venv/bin/ruff ## what of it can be put right by a program, and what is made by one
	@$(PYTHON) tools/make_sync.py
	@$(PYTHON) tools/make_help.py
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

bench: setup ## the numbers: a table and bench/results.json
	@.venv/bin/uv sync --locked --inexact --group bench --quiet
	@$(PYTHON) -m bench

docs: .venv/bin/ruff ## do the documents tell the truth: links, commands, examples
	@$(PYTHON) -m pytest tests/repo
	@echo "The documents are README.md and docs/."

dist: .venv/bin/ruff ## the packages, in dist/
	@.venv/bin/uv build

.venv/bin/ruff:
	@tools/setup --python-only
