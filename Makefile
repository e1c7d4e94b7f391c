# The only entry points. `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup setup-tests run test test-long check fix bench docs dist release-check setup-checks

PYTHON := .venv/bin/python

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 22

setup: ## everything that run and test need: Python packages, runsc, images and their template; safe to repeat
	@tools/setup

setup-tests: ## the same, and what the SDKs in TypeScript and Rust are built and tested with
	@tools/setup --tests

setup-checks: ## what check, fix and dist need: Python packages, those of the TypeScript SDK, and Rust
	@tools/setup --checks

run: setup ## the server, until Ctrl-C; prints its address and what to try first. Options: make run ARGS="--port 9000"
	@$(PYTHON) -m everforge.server serve --welcome $(ARGS)

test: setup-tests check ## every test that a change must pass, on the real engine
	@$(PYTHON) -m pytest

test-long: setup-tests check ## the same for hours: longer models, more rounds, more random kills
	@EVERFORGE_TEST_LONG=1 $(PYTHON) -m pytest

check: setup-checks ## style, types, which way imports point, and that the SDKs of three languages have the same classes and methods
	@$(PYTHON) tools/make_sync.py --check
	@$(PYTHON) tools/make_help.py --check
	@$(PYTHON) tools/make_contract.py --check
	@$(PYTHON) tools/make_parity.py --check
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@.venv/bin/pyright
	@.venv/bin/lint-imports --no-logo
	@tools/check_typescript
	@tools/check_rust

fix: setup-checks ## what of it can be put right by a program, and what is made by one
	@$(PYTHON) tools/make_sync.py
	@$(PYTHON) tools/make_help.py
	@$(PYTHON) tools/make_contract.py
	@$(PYTHON) tools/make_parity.py
	@tools/check_typescript --fix
	@tools/check_rust --fix
	@.venv/bin/ruff check --fix
	@.venv/bin/ruff format

bench: setup ## the numbers: a table and bench/results.json
	@.venv/bin/uv sync --locked --inexact --group bench --quiet
	@$(PYTHON) -m bench

docs: .venv/bin/ruff ## do the documents tell the truth: links, commands, examples
	@$(PYTHON) -m pytest tests/repo
	@echo "The documents are README.md and docs/."

dist: setup-checks ## the packages of all three languages, in dist/: wheel, npm tarball and crate
	@tools/make_dist

release-check: dist setup ## installs each package of dist/ in an empty folder, and runs an example with it
	@$(PYTHON) tools/release_check.py


.venv/bin/ruff:
	@tools/setup --python-only
