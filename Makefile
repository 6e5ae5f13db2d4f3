# Every command of the project. `make help` lists them.
.DEFAULT_GOAL := help
.PHONY: help venv az test-dependencies run cluster lab test test-core test-tools test-all test-packages coverage check lint types fmt bench \
	bench-smoke crash-points fuzz deb dist docs mutants mutants-by-machine screenshots simulate soak constraints clean FORCE

PYTHON ?= python3
ARGS ?=
BIN := .venv/bin
CODE := src tests $(wildcard tools benchmarks)

# Tests start hundreds of Pythons, and each would compile everything it imports once more.
unexport PYTHONDONTWRITEBYTECODE

# Scripts in .venv and the others name this directory and the Python that made them. If one was copied
# here, or that Python has gone, or an installation broke off, its stamps mean nothing and it is
# made anew.
ifneq ($(shell $(BIN)/python -c "print(open('.venv/.whole').read().strip())" 2>/dev/null),$(CURDIR))
STALE := FORCE
endif
ifneq ($(shell .venv-fuzz/bin/python -c "print(open('.venv-fuzz/.whole').read().strip())" 2>/dev/null),$(CURDIR))
STALE_FUZZ := FORCE
endif
ifneq ($(shell .venv-nova/bin/python -c "print(open('.venv-nova/.whole').read().strip())" 2>/dev/null),$(CURDIR))
STALE_NOVA := FORCE
endif
ifneq ($(shell .venv-az/bin/python -c "print(open('.venv-az/.whole').read().strip())" 2>/dev/null),$(CURDIR))
STALE_AZ := FORCE
endif

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' Makefile

.venv/.server: constraints/server.txt pyproject.toml $(STALE)
	@$(PYTHON) tools/environment.py server

.venv/.dev: constraints/dev.txt pyproject.toml $(STALE)
	@$(PYTHON) tools/environment.py dev

.venv-az/.az: constraints/az.txt $(STALE_AZ)
	@$(PYTHON) tools/environment.py az

.venv-nova/.nova: constraints/nova.txt $(STALE_NOVA)
	-@$(PYTHON) tools/environment.py nova

# Without it a test is skipped, except in CI: atheris has wheels for some systems only.
.venv-fuzz/.fuzz: constraints/fuzz.txt $(STALE_FUZZ)
	-@$(PYTHON) tools/environment.py fuzz

venv: .venv/.dev ## make .venv with all that development needs

az: .venv-az/.az ## make .venv-az with the az that tests drive the server with

run: .venv/.server ## serve; pass flags as ARGS="--clock paused"
	@exec $(BIN)/forewarned serve $(ARGS)

cluster: .venv/.dev ## serve with three nodes on a PostgreSQL with a standby, and say how to break them
	@$(BIN)/python -m tools.cluster

lab: .venv/.dev ## serve two hypervisors with real guests, whose events are carried out
	@$(BIN)/python -m tools.lab $(ARGS)

# Two jobs at a time, each shown whole when it is over, where this make can do that.
TWO_JOBS := --no-print-directory -j2 $(if $(filter output-sync,$(.FEATURES)),--output-sync)
# Two more than there are processors. A module's tests run in one, which starts once what they share.
DISTRIBUTED := --processes 0
PYTEST := $(BIN)/pytest $(DISTRIBUTED)
# What `test-core` and `lint` have run already.
CHECKED := --ignore=tests/core --ignore=tests/test_constraints.py --ignore=tests/test_tree.py --ignore=tests/test_real_time.py
# What `test-packages` runs: it builds, downloads and installs for minutes.
ELSEWHERE := --ignore=tests/artefacts

# Once after an installation, and beside the checks: it takes one processor 20 seconds.
.venv/.compiled: .venv/.dev
	$(BIN)/pytest --collect-only -qq $(CHECKED) --ignore=tests/tools >/dev/null
	@touch $@

# What tests would install themselves while others wait: all of it beside the checks.
test-dependencies: .venv/.dev
	@$(BIN)/python -m tools.installation

test: ## run the checks and the tests: what CI runs
	@$(MAKE) $(TWO_JOBS) types test-dependencies .venv-nova/.nova .venv-fuzz/.fuzz az lint test-core .venv/.compiled bench-smoke
	$(PYTEST) -m "not thorough" $(CHECKED) $(ELSEWHERE) --ignore=tests/tools $(ARGS)

test-core: .venv/.dev ## run the core's tests, which must cover every branch of it
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest --quiet tests/core
	@$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='src/forewarned/core/*' --fail-under=100

test-tools: .venv/.dev ## test the tools: mutants, benchmarks, screenshots
	$(PYTEST) tests/tools $(ARGS)

test-all: ## run every test, the thorough ones, many more hostile requests and the artefacts too: more than an hour
	@$(MAKE) $(TWO_JOBS) types test-dependencies .venv-nova/.nova .venv-fuzz/.fuzz az lint test-core
	HYPOTHESIS_PROFILE=patient $(PYTEST) $(CHECKED) $(ELSEWHERE) $(ARGS)
	HYPOTHESIS_PROFILE=thorough $(PYTEST) tests/control/arm/test_hostile.py tests/metadata/test_differential.py
	@$(MAKE) --no-print-directory bench-smoke
	@$(MAKE) --no-print-directory test-packages ARGS=

test-packages: .venv/.dev ## build what users install, and try each artefact alone, as they would
	$(BIN)/pytest --durations=5 tests/artefacts $(ARGS)

coverage: .venv/.dev .venv-az/.az ## run all but the thorough tests, and see what they cover in every process
	@$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest $(DISTRIBUTED) -m "not thorough" $(ELSEWHERE) $(ARGS)
	@$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: lint types ## lint, formatting, types, import rules, the rules of the tree

lint: .venv/.dev
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports
	$(BIN)/pytest --quiet tests/test_constraints.py tests/test_tree.py tests/test_real_time.py

# What users run on systems that our tests don't.
ELSEWHERE_TOO := $(addprefix src/forewarned/,client agent testing cli/agent)

types: .venv/.dev
	$(BIN)/mypy $(CODE)
	$(BIN)/mypy --platform win32 --cache-dir .mypy_cache/win32 $(ELSEWHERE_TOO)
	$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin $(ELSEWHERE_TOO)

fmt: .venv/.dev ## format, and mend what the linter can mend
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

bench: .venv/.dev ## measure every row of docs/scale.md; pass flags as ARGS="--rows P1,P2"
	$(BIN)/python -m benchmarks $(ARGS)

bench-smoke: .venv/.dev ## see in half a minute that no figure has collapsed
	$(BIN)/python -m benchmarks.smoke

dist: .venv/.dev ## build what users install into dist/, the same bytes each time
	@$(BIN)/python -m tools.release $(ARGS)

deb: .venv/.dev ## build the Debian packages of agent and server into dist/
	@$(BIN)/python -m tools.release agent-deb server-deb

docs: .venv/.dev ## build the documentation into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

screenshots: .venv/.dev ## take the pictures of the console anew, light and dark
	$(BIN)/python -m tools.screenshots

mutants: .venv/.dev ## prove that the tests catch small wrong edits
	$(BIN)/python -m tools.mutants $(ARGS)

mutants-by-machine: .venv/.dev ## make every small wrong edit of the rules; ARGS="--module core/notice.py" for one module
	$(BIN)/python -m tools.mutants.machine $(ARGS)

crash-points: .venv/.dev ## kill, fill the disk and break it at every call that writes; flags in ARGS="--subject journal"
	@$(BIN)/python -m tools.crash_points $(ARGS)

fuzz: .venv/.dev .venv-fuzz/.fuzz ## try inputs that no one thought of, an hour for each reader; flags in ARGS="--seconds 5"
	@$(BIN)/python -m tools.fuzz $(ARGS)

simulate: .venv/.dev ## run the service from 2,000 seeds in virtual time; replay one with ARGS="--seed 1234"
	@$(BIN)/python -m tools.simulation $(ARGS)

soak: .venv/.dev ## use three nodes for an hour, and see whether anything grows; flags in ARGS="--minutes 10"
	@$(BIN)/python -m tools.soak $(ARGS)

# uv is wanted for this one step only, so it lives in an environment of its own. Addresses of
# package indexes and paths of machines stay out of the files: whoever installs has their own.
PIN = .venv-constraints/bin/uv --quiet pip compile --universal --python-version 3.11 \
	--generate-hashes --no-config --no-emit-index-url --no-emit-find-links --no-annotate \
	--custom-compile-command 'make constraints'
COMPILE = $(PIN) pyproject.toml constraints/build.in
# What Nova requires and nothing imports where tests run it: a fifth of the time that its installation takes.
NOVA_UNUSED := async-timeout cmd2 dnspython eventlet jwcrypto markdown-it-py mdurl numpy osc-lib oslo-rootwrap oslo-upgradecheck \
	ovs ovsdbapp prompt-toolkit pycadf pyjwt pyparsing pyperclip pyroute2 redis requests-mock rich rich-argparse sortedcontainers \
	tzdata voluptuous wcwidth websockify win-inet-pton yappi

constraints: ## pin dependencies anew; ARGS=--upgrade takes the newest
	$(PYTHON) -m venv .venv-constraints
	.venv-constraints/bin/pip install --quiet --disable-pip-version-check uv
	$(COMPILE) $(ARGS) --extra server --extra postgres --extra dev --extra docs --output-file constraints/dev.txt
	$(COMPILE) --extra server --extra postgres --constraint constraints/dev.txt --output-file constraints/server.txt
	$(PIN) pyproject.toml --constraint constraints/dev.txt --output-file constraints/agent.txt
	$(COMPILE) --extra testing --constraint constraints/dev.txt --output-file constraints/testing.txt
	$(PIN) $(ARGS) constraints/az.in --output-file constraints/az.txt
	$(PIN) $(ARGS) constraints/nova.in $(addprefix --no-emit-package=,$(NOVA_UNUSED)) --output-file constraints/nova.txt
	$(PIN) $(ARGS) constraints/fuzz.in --constraint constraints/dev.txt --output-file constraints/fuzz.txt
	$(PIN) $(ARGS) constraints/libvirt-build.in --output-file constraints/libvirt-build.txt
	$(PIN) $(ARGS) constraints/libvirt.in --output-file constraints/libvirt.txt
	rm -rf .venv-constraints

clean: ## remove all that was made here
	rm -rf .venv .venv.lock .venv-az .venv-az.lock .venv-nova .venv-nova.lock .venv-fuzz .venv-fuzz.lock .venv-constraints site dist .coverage .coverage.* \
		.mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis .fuzz
