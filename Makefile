# SPDX-License-Identifier: Apache-2.0
#
# The front door. Every target sets up what it needs: on Debian missing packages are installed (as
# root or through sudo); Python tools live in .venv. The C++ build itself is CMake's.
#
#   make demo     build, attach to a real program, leave demo.html and demo.strobe
#   make build    .venv with the package installed: .venv/bin/pystrobe
#   make test     C++ tests (GoogleTest) and end-to-end tests (pytest)
#   make matrix   the end-to-end tests on every interpreter, 3.8 to 3.15, fetching those missing
#   make bench    the figures, side by side with other profilers
#   make bench-peers  the other profilers alone, in build/bench-peers
#   make check    warnings as errors, headers alone, sanitizers; lint without clang-tidy
#   make lint     clang-format, clang-tidy, ruff, mypy
#   make wheel    dist/*.whl, for any Linux with this glibc or a later one
#   make clean    removes what the targets above made

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := $(CURDIR)/.venv
BUILD := build/release
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
# The compiler cache is used where there is one.
ifneq ($(shell command -v ccache),)
export CMAKE_CXX_COMPILER_LAUNCHER ?= ccache
endif
export PIP_DISABLE_PIP_VERSION_CHECK := 1

PACKAGE_SOURCES := CMakeLists.txt pyproject.toml $(shell find cmake profiler sampler gpu cli pyext \
	-type f -not -name '*.pyc' 2>/dev/null)

.PHONY: help demo build test matrix bench bench-peers check lint wheel clean setup-build setup-test setup-matrix \
	setup-lint setup-bench

help:
	@sed -n 's/^#   make/  make/p' Makefile

setup-build:
	@scripts/setup.sh build
setup-test:
	@scripts/setup.sh build test
setup-matrix:
	@scripts/setup.sh build test matrix
setup-lint:
	@scripts/setup.sh build lint
setup-bench:
	@scripts/setup.sh build matrix

# A virtual environment with the tools of one dependency group of pyproject.toml.
$(VENV)/bin/python: | setup-build
	@echo "Making $(VENV), with tools from PyPI ..."
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install -q --upgrade 'pip>=25.1'
$(VENV)/.group-%: pyproject.toml | $(VENV)/bin/python
	@$(VENV)/bin/python -m pip install -q --group $*
	@touch $@

# The package, built in $(BUILD) where the C++ tests are built too.
$(VENV)/.installed: $(PACKAGE_SOURCES) | $(VENV)/.group-build
	@scripts/build.sh $(BUILD) $(VENV)
	@touch $@

build: setup-build $(VENV)/.installed

demo: build
	@scripts/demo.sh $(VENV)

test: setup-test $(VENV)/.group-test $(VENV)/.installed
	@scripts/test.sh $(BUILD) $(VENV)

matrix: setup-matrix $(VENV)/.group-test $(VENV)/.installed
	@tests/interpreters/fetch.sh
	@echo "The tests will run on:"; tests/interpreters/find.py
	@PYSTROBE_MATRIX=1 scripts/test.sh $(BUILD) $(VENV)

bench: setup-bench $(VENV)/.group-bench $(VENV)/.installed
	@tests/interpreters/fetch.sh sid
	@cmake -D PYSTROBE_OTHER_PYTHONS="$$(tests/interpreters/find.py --headers)" $(BUILD) >/dev/null
	@cmake --build $(BUILD) --target other_pythons
	@PYSTROBE_BUILD=$(BUILD) $(VENV)/bin/python bench/run.py

bench-peers: setup-build
	@PYTHON=$(PYTHON) bench/peers.sh build/bench-peers

check: setup-lint $(VENV)/.group-lint $(VENV)/.group-test $(VENV)/.group-build
	@scripts/check.sh $(VENV) $(CHECK)

lint: setup-lint $(VENV)/.group-lint $(VENV)/.group-test $(VENV)/.group-build
	@scripts/lint.sh $(VENV)

wheel: setup-build $(VENV)/.group-wheel
	@scripts/wheel.sh $(BUILD) $(VENV)

clean:
	rm -rf build dist .venv .pytest_cache .mypy_cache .ruff_cache demo.html demo.strobe
