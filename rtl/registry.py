"""The one registry of blocks; every other place derives its names from it."""

import dataclasses
import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rtl.unit import Unit
    from sim_models.params.base import Params

__all__ = ["BLOCKS", "Block"]


@dataclasses.dataclass(frozen=True)
class Block:
    """One block: the same name in RTL, Verilog, golden model, bench and documentation."""

    #: name of the block, of its RTL and golden files and stem of its Verilog modules
    name: str
    #: folder below ``rtl``, ``sim_models/params``, ``sim_models/golden``, ``tb`` and ``tests/rtl``
    folder: str
    #: one sentence for ``speculoos list``
    summary: str
    #: paper section that the block implements
    source: str
    #: module of ``speculoos/bench`` that measures designs of this block, if any does
    benchmark: str | None = None

    @property
    def _place(self) -> str:
        return f"{self.folder.replace('/', '.')}.{self.name}"

    @property
    def _camel(self) -> str:
        return "".join("PE" if w == "pe" else w.capitalize() for w in self.name.split("_"))

    def unit(self, params: "Params") -> "Unit":
        """Build the component (imports Amaranth)."""
        return getattr(importlib.import_module(f"rtl.{self._place}"), self._camel)(params)

    @property
    def params(self) -> "type[Params]":
        """The block's parameter class."""
        return getattr(importlib.import_module(f"sim_models.params.{self._place}"), self._camel + "Params")

    @property
    def golden(self) -> str:
        """Import path of the golden model."""
        return f"sim_models.golden.{self._place}"

    @property
    def bench(self) -> str:
        """Import path of the cocotb bench."""
        return f"tb.{self.folder.replace('/', '.')}.test_{self.name}"


BLOCKS: dict[str, Block] = {b.name: b for b in (
    Block("pe", "tile/engine", "one multiply-accumulate, systolic and vector-lane", "SPECTRA 2.2"),
    Block("pe_array", "tile/engine", "rows x cols PEs with wavefront control and result drain", "SPECTRA 2.2"),
    Block("compute_engine", "tile/engine", "the array with feeders and four double-buffered local memories",
          "SPECTRA 2.2", benchmark="engine"),
    Block("ram", "memory", "the project's memory: one write port, one synchronous read port", "block RAM"),
    Block("fifo", "memory", "a small queue in distributed memory", "stream"),
    Block("axi_lite", "bus", "an AXI4-Lite slave as a plain port of words", "AMBA AXI4, part B"),
    Block("float_adder", "arith", "float32 sum, rounded to nearest even", "IEEE 754, no subnormals"),
    Block("float_multiplier", "arith", "float32 product, rounded to nearest even", "IEEE 754, no subnormals"),
    Block("exact_product", "arith", "exact float32 product of two FP16 or BF16 numbers", "IEEE 754"),
    Block("float_comparator", "arith", "less, equal or unordered, of two float32 numbers", "IEEE 754"),
    Block("float_maximum", "arith", "largest of several float32 numbers and its index", "SADDLE IV-C"),
    Block("float_to_int", "arith", "float32 to a signed integer, rounded and saturated", "IEEE 754"),
    Block("int_to_float", "arith", "a signed integer to float32", "IEEE 754"),
    Block("float_to_half", "arith", "float32 to FP16 or BF16", "IEEE 754"),
    Block("half_to_float", "arith", "FP16 or BF16 to float32", "IEEE 754"),
    Block("exp2", "arith", "power of two by a table of linear segments", "softmax"),
    Block("reciprocal", "arith", "float32 reciprocal by table and Newton step", "softmax"),
    Block("reciprocal_sqrt", "arith", "float32 reciprocal square root by table and Newton step", "RMSNorm"),
    Block("shared_pool", "manager/pools",
          "draft tokens of all requests: match, highest H first, lock, unlock by verdict", "SADDLE IV-B"),
    Block("intensity_scheduler", "manager", "where draft FC and target attention run, by thresholds with hysteresis",
          "SADDLE IV-D"),
    Block("draft_controller", "manager", "H of each draft, when it stops, and which pool a token goes to",
          "SADDLE IV-A"),
    Block("softmax_unit", "manager/softmax",
          "largest logit and the probability of a token, in one pass over a vocabulary", "SADDLE IV-A"),
    Block("manager", "manager", "who drafts, where tokens go, what is verified; counts every kind of waiting",
          "SADDLE IV", benchmark="manager"),
    Block("manager_registers", "manager", "the Manager's switches and counters on AXI4-Lite", "SADDLE IV"),
    Block("saddle_manager", "manager", "the Manager whole: logits in, texts out, registers and interrupt",
          "SADDLE IV", benchmark="manager"),
    Block("bank_pe", "pim/bank", "exact dot products of FP16 or int8 words beside a bank", "SADDLE IV-C"),
    Block("sum_rounder", "pim/bank", "an exact sum rounded once, to float32, FP16 or int32", "SADDLE IV-C"),
    Block("dram_bank", "pim/bank", "a bank for simulation: rows, words, and a checker of DRAM timing", "SADDLE III"),
    Block("bank_group", "pim/bank", "four banks with their processing elements", "SADDLE III"),
    Block("pseudo_channel", "pim/channel",
          "16 banks in lockstep, global buffer, accumulators, DRAM timing and refresh", "SADDLE III"),
    Block("buffer_die_sfu", "sfu", "softmax, norms, activations and sums of rows of float32 numbers", "SADDLE III"),
    Block("pim_stack", "pim/stack", "pseudo-channels in step, the special function unit, sums rounded once, commands",
          "SADDLE III", benchmark="pim"),
)}
