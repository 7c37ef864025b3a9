# Every target sets the environment up by itself: .venv and install/, nothing outside this folder.
# ARGS reach the command: make test ARGS='-k dynamics'. Another interpreter: make PYTHON=python3.12 test.

PYTHON ?= python3
RUN = $(PYTHON) tools/run.py

.PHONY: setup test test-long demo lint bench clean

setup:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 10) or sys.exit("setup: Python 3.10 or newer is needed, this is \
	%d.%d; install one and name it: make PYTHON=python3.12 ..." % sys.version_info[:2])'
	@$(PYTHON) -m tools.bootstrap

test: setup
	@$(RUN) --own-domain python -m pytest -n 4 --dist loadfile --no-loadscope-reorder $(ARGS)

test-long: setup
	@$(RUN) --own-domain python -m tools.test_long $(ARGS)

demo: setup
	@$(RUN) --own-domain python -m tools.demo $(ARGS)

lint: setup
	@$(RUN) ruff check .
	@$(RUN) ruff format --check .
	@$(RUN) mypy
	@$(RUN) codespell

bench: setup
	@$(RUN) python -m benchmarks.run $(ARGS)

clean:
	rm -rf .venv .cache build install log dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
