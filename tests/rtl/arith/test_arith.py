"""Parameters of the arithmetic pipelines, the cuts that registers fall on, and budgets of LUTs."""

from typing import Any

import numpy as np
import pytest

from gen.flows.synth import synthesize
from rtl.registry import BLOCKS
from sim_models.golden.arith.float_adder import FloatAdder
from sim_models.params.arith.exp2 import Exp2Params
from sim_models.params.arith.float_adder import FloatAdderParams
from sim_models.params.arith.float_maximum import FloatMaximumParams
from sim_models.params.base import ParamError


@pytest.mark.parametrize(("cls", "values", "message"), [
    (FloatMaximumParams, {"lanes": 4, "stages": 4}, "stages must be at most 3 with 4 lanes, not 4"),
    (FloatMaximumParams, {"lanes": 1, "stages": 2}, "stages must be at most 1 with 1 lanes, not 2"),
    (FloatMaximumParams, {"lanes": 0}, "lanes must be from 1 to 64, not 0"),
    (Exp2Params, {"stages": 6}, "stages must be at most 5 for float32, not 6"),
    (Exp2Params, {"format": "bf16"}, "format must be one of float32, fp16, not bf16"),
    (FloatAdderParams, {"stages": 0}, "stages must be from 1 to 6, not 0"),
])
def test_wrong_parameters(cls: type, values: dict[str, Any], message: str) -> None:
    with pytest.raises(ParamError) as error:
        cls(**values)
    assert str(error.value) == message
    assert error.value.name in values


def test_golden_pipeline_holds_and_forgets() -> None:
    model = FloatAdder(FloatAdderParams(stages=2))
    one = {"a": np.uint32(0x3F800000), "b": np.uint32(0x3F800000)}
    model.step(enable=1, valid=1, operands=one)
    assert model.output is None
    for _ in range(3):
        model.step(enable=0, valid=1, operands=one)
        assert model.output is None
    model.step(enable=1, valid=0, operands=one)
    assert model.output == {"result": 0x40000000}
    model.step(enable=0, valid=0, operands=one)
    assert model.output == {"result": 0x40000000}
    model.reset()
    assert model.output is None


#: LUTs with those that serve as shift registers, DSPs on xcup that a pipeline may take; none takes block RAM
BUDGET = {("exp2", "float32"): (250, 1), ("exp2", "fp16"): (250, 1), ("exact_product", "bf16"): (70, 1)}


@pytest.mark.parametrize(("block", "format"), BUDGET)
def test_area_stays_within_its_budget(block: str, format: str) -> None:
    unit = BLOCKS[block].unit(BLOCKS[block].params(format=format))
    area = synthesize(unit, "xcup")
    luts, dsps = BUDGET[block, format]
    assert area["lut"] + area["srl"] <= luts
    assert (area["dsp"], area["bram"]) == (dsps, 0)
