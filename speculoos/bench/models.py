"""Weight matrices of a model as GEMMs, and operands to run them with."""

import dataclasses
from typing import TYPE_CHECKING

from gen.errors import UserError

if TYPE_CHECKING:
    import numpy as np

    from gen.config.config import Config
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
    from sim_models.transformer.checkpoint import ModelShape

__all__ = ["BenchModel", "bench_models", "engine_params", "operands"]


def engine_params(config: "Config", what: str) -> "ComputeEngineParams":
    """The parameters of a design that must be an engine; ``what`` begins the sentence if it is none.

    Raises
    ------
    UserError
        It is another block.
    """
    from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
    if config.block.name != "compute_engine" or not isinstance(config.params, ComputeEngineParams):
        raise UserError(f"{what} a compute_engine, and {config.name} is a {config.block.name}")
    return config.params


@dataclasses.dataclass(frozen=True)
class BenchModel:
    """A model by its weight matrices.

    Members
    -------
    name: str
    matrices: list of (str, int, int)
        Name, K and N of every weight matrix, in the order of a forward pass.
    """

    name: str
    matrices: list[tuple[str, int, int]]

    @property
    def shapes(self) -> dict[tuple[int, int], list[str]]:
        """Distinct (K, N), with the names of their matrices."""
        found: dict[tuple[int, int], list[str]] = {}
        for name, k, n in self.matrices:
            found.setdefault((k, n), []).append(name)
        return found

    @property
    def weights(self) -> int:
        """Weights in all matrices, each a MAC per row."""
        return sum(k * n for _, k, n in self.matrices)


def bench_models(config: "Config") -> list[BenchModel]:
    """The model that a design names, else the target and the draft that come with the project.

    Raises
    ------
    UserError
        The shipped models cannot be read.
    """
    from sim_models.transformer.checkpoint import CheckpointError, ModelShape
    from sim_models.transformer.pair import load_pair
    if config.model is not None:
        return [_model(config.name, ModelShape(**dataclasses.asdict(config.model)))]
    try:
        pair = load_pair()
    except CheckpointError as e:
        raise UserError(f"the models that come with the project are needed: {e}", 1) from e
    return [_model("target", pair.target.shape), _model("draft", pair.draft.shape)]


def _model(name: str, shape: "ModelShape") -> BenchModel:
    from sim_models.transformer.checkpoint import WEIGHTS
    matrices = [(f"layers.{layer}.{w}", *shape.gemm(w)) for layer in range(shape.n_layers) for w in WEIGHTS]
    return BenchModel(name, [*matrices, ("wcls", *shape.gemm("wcls"))])


def operands(p: "ComputeEngineParams", m: int, k: int, n: int, seed: int) -> "tuple[np.ndarray, np.ndarray]":
    """Activations [m, k] and weights [k, n], uniform over all that the engine takes."""
    import numpy as np
    rng = np.random.default_rng([seed, m, k, n])
    low, high = -(1 << (p.operand_width - 1)), 1 << (p.operand_width - 1)
    return rng.integers(low, high, (m, k)), rng.integers(low, high, (k, n))
