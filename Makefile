# Two commands for users, `make demo` and `make test`; each starts from a bare checkout and needs
# only Python (3.11 or newer), a C compiler and a package index. `make help` lists the others.
#
# The package is installed editable, with its kernels built in place: the folder dpcd_sklearn/ in
# the checkout is then the same package as the installed one, whichever comes first on the path.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?= -n auto --dist worksteal

PY := $(VENV)/bin/python
KERNELS := $(shell find dpcd_sklearn tests -name '*.pyx' -o -name '*.pxd' -o -name '*.h')
# `make test SLOW=1` adds the statistical and long tests.
SLOW_ARGS := $(if $(SLOW),-m "slow or not slow")

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.PHONY: help demo demo-dask test lint doc bench-papers bench-growth clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo   a first private model in a minute: a raw table, one call, its price, a report'
	@echo 'make demo-dask  a Dask cluster of this machine, 10 million records: the same bits, how long'
	@echo 'make test   lint and tests (SLOW=1: the statistical and long tests too)'
	@echo 'make lint   ruff, cython-lint and the limits of lines of code, .ci/limits.toml'
	@echo 'make doc    the documentation in doc/_build/html; warnings are errors'
	@echo 'make bench-papers  the problems of the papers: their numbers beside ours, figures'
	@echo 'make bench-growth  time against n, p and stored entries; records on disk; a figure'
	@echo 'make clean  remove everything that was made'
	@echo 'Set PYTHON=python3.13 to choose the interpreter, VENV=folder to choose its place.'

demo-dask: $(VENV)/dask.stamp $(VENV)/kernels.stamp
	$(PY) benchmarks/cluster.py

demo: $(VENV)/demo.stamp $(VENV)/kernels.stamp
	$(PY) examples/demo.py

test: lint $(VENV)/kernels.stamp
	$(PY) -m pytest $(SLOW_ARGS) $(PYTEST_ARGS)

lint: $(VENV)/test.stamp
	$(PY) -m ruff check .
	PATH="$(abspath $(VENV)/bin):$$PATH" cython-lint dpcd_sklearn tests  # it calls pycodestyle
	$(PY) .ci/count.py --lint

doc: $(VENV)/doc.stamp $(VENV)/kernels.stamp
	$(MAKE) -C doc html SPHINXBUILD='$(abspath $(PY)) -m sphinx'

bench-papers: $(VENV)/demo.stamp $(VENV)/kernels.stamp
	$(PY) benchmarks/reproduce_papers.py --plots benchmarks/figures

bench-growth: $(VENV)/demo.stamp $(VENV)/kernels.stamp
	$(PY) benchmarks/growth.py --plots benchmarks/figures

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .ruff_cache .hypothesis
	rm -rf doc/_build doc/auto_examples doc/generated doc/sg_execution_times.rst
	find dpcd_sklearn tests -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- behind the commands -----------------------------------------------------------------------

$(VENV)/demo.stamp: EXTRAS = plot,progress,table
$(VENV)/dask.stamp: EXTRAS = dask
$(VENV)/test.stamp: EXTRAS = test,lint
$(VENV)/doc.stamp: EXTRAS = doc

# An environment with what the build needs, as pyproject.toml states it.
$(VENV)/build.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Python 3.11 or newer is needed: make PYTHON=python3.13 ...' >&2; exit 1; }
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' > $(VENV)/build-requires.txt
	$(PY) -m pip install --quiet -r $(VENV)/build-requires.txt
	touch $@

# One editable install for each set of extras; it builds the kernels too.
$(VENV)/%.stamp: $(VENV)/build.stamp setup.py
	$(PY) -m pip install --quiet --no-build-isolation --editable '.[$(EXTRAS)]'
	touch $@

# Only what changed is built anew.
$(VENV)/kernels.stamp: $(VENV)/build.stamp setup.py $(KERNELS)
	$(PY) setup.py --quiet build_ext --inplace
	touch $@
