# make demo: the engine computes a real language model's layers in simulated Verilog, bit-exact
# make test: everything that must hold
# make soak: the long tests (docs/soak.md); SEED=n repeats or continues a run, ONLY=text chooses tests
# All make their own environment in .venv.

SPECULOOS = .venv/bin/speculoos

.PHONY: demo test soak lint clean

demo:
	@scripts/environment.sh demo
	@$(SPECULOOS) demo

test: lint
	@.venv/bin/python -m pytest -n 2 --dist loadgroup

soak:
	@scripts/environment.sh test
	@.venv/bin/python scripts/soak.py $(if $(SEED),--seed $(SEED)) $(if $(ONLY),--only '$(ONLY)')

lint:
	@scripts/environment.sh test
	@.venv/bin/ruff check .
	@.venv/bin/pyright

clean:
	rm -rf .venv build .pytest_cache .ruff_cache .hypothesis *.egg-info
