# `make help` lists what there is. Everything runs in .venv, which these commands make and keep fresh.
.POSIX:
.PHONY: help demo demo-reset serve test test-long check bench screenshots lock format clean
.DEFAULT_GOAL = help

RUN = .venv/bin/python
CODE = distressbench_site corpus annotation scoring tests requirements manage.py
INSTALL = PYTHON="$(PYTHON)" sh requirements/install.sh

help: ## List the commands
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 : \2/p' Makefile | \
		awk -F ' : ' '{ printf "%-18s %s\n", $$1, $$2 }'

demo: ## Install, load the sample corpus and people, and serve them on this machine
	@$(INSTALL) base
	@exec $(RUN) manage.py demo $(ARGS)

demo-reset: ## The same from the beginning; what was labelled in the demo is lost
	@$(INSTALL) base
	@exec $(RUN) manage.py demo --reset $(ARGS)

serve: ## Serve the database of this folder without touching it
	@$(INSTALL) base
	@exec $(RUN) manage.py serve $(ARGS)

test: ## Run the tests on SQLite, and on PostgreSQL, Redis and Chromium where they are found
	@$(INSTALL) test
	@$(RUN) -m tests.run $(ARGS)

test-long: ## Run the tests that take minutes
	@$(INSTALL) test
	@$(RUN) -m tests.run --long $(ARGS)

check: ## Lint, types, import rules, migrations, templates, locks
	@$(INSTALL) check
	$(RUN) requirements/lock.py --check
	$(RUN) -m ruff check $(CODE)
	$(RUN) -m ruff format --check $(CODE)
	$(RUN) -m mypy
	.venv/bin/lint-imports
	find templates -name '*.html' | sort | xargs .venv/bin/djade --target-version 5.2 --check
	$(RUN) manage.py check --fail-level WARNING
	$(RUN) manage.py makemigrations --check --dry-run

bench: ## Print the ratios of tests/benchmarks
	@$(INSTALL) test
	@for each in tests/benchmarks/bench_*.py; do PYTHONPATH=. $(RUN) "$$each" || exit 1; done

screenshots: ## Take the pictures of the README anew (needs Chromium)
	@$(INSTALL) test
	@$(RUN) -m tests.screenshots

lock: ## Write requirements/*.txt anew from pyproject.toml (needs uv; ARGS=--upgrade for newer versions)
	@$(INSTALL) base
	@$(RUN) requirements/lock.py $(ARGS)

format: ## Format code and templates
	@$(INSTALL) check
	@$(RUN) -m ruff check --fix $(CODE)
	@$(RUN) -m ruff format $(CODE)
	@find templates -name '*.html' | sort | xargs .venv/bin/djade --target-version 5.2

clean: ## Remove the environment and caches; data/ stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage htmlcov
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
