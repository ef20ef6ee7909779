"""Engines around the Manager with softmax unit: draft tokens become vectors of logits."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rtl.manager.layouts import manager_settings
from rtl.manager.registers import registers
from sim_models.golden.manager import manager
from sim_models.golden.manager.manager import Switches
from sim_models.golden.manager.saddle_manager import Inputs, LogitsBeat, Outputs
from sim_models.numerics.float32 import bits
from sim_models.params.manager.saddle_manager import SaddleManagerParams
from sim_models.specdec.fixed import ONE
from tb.manager.manager_engines import Widths, packed, settings_value, unpacked

__all__ = ["IN", "OUT", "Feed", "Vector", "address", "logit_payloads", "payloads", "random_vector", "read_outputs",
           "register_words", "vector"]

#: streams, in the order of the fields of inputs and outputs
IN, OUT = ("requests", "logits", "verdicts"), ("draft", "verify", "emitted")

Vector = tuple[np.ndarray, np.ndarray, int]
"""Float32 codes of the logits, which of them count, and the given token or -1."""

_MASKED = 0xFF800000


def vector(token: int, probability: int, size: int) -> Vector:
    """A vector of ``size`` logits in which a token has a probability; all others share the rest.

    It is the largest if it is more likely than each of them, else given.
    """
    p = probability / ONE
    codes = np.zeros(size, np.uint32)
    if p in (0, 1) or size == 1:
        codes[:] = _MASKED if p == 1 else 0
        codes[token] = 0 if p == 1 or size == 1 else _MASKED
    else:
        codes[token] = bits(np.array(np.log(p * (size - 1) / (1 - p)), np.float32))
    return codes, np.ones(size, bool), -1 if p * size > 1 or size == 1 else token


def random_vector(gen: np.random.Generator, token: int, longest: int) -> Vector:
    """Logits of any spread in which a token is the largest, or given; some masked, sometimes all of them."""
    size = token + 1 if gen.random() < 0.3 else int(gen.integers(token + 1, longest + 1))
    x = gen.normal(0, gen.choice([0.1, 1.0, 10.0]), size).astype(np.float32)
    keep = gen.random(size) >= gen.choice([0.0, 0.5, 1.0], p=[0.6, 0.3, 0.1])
    given = token
    if keep[token] and gen.random() < 0.6:
        x[token] = x.max() + np.float32(gen.choice([0.001, 1.0, 5.0]))
        given = -1
    return bits(x), keep, given


class Feed:
    """Turns the draft tokens that the engines offer into beats.

    Parameters
    ----------
    p:
        The device.
    make: function of (request, token, probability)
        The vector of a draft token.
    """

    def __init__(self, p: SaddleManagerParams, make: Callable[[int, int, int], Vector]) -> None:
        self.p, self._make = p, make
        #: request, codes and masks by beats, given token of the vector at hand; beats of it that were taken
        self._vector: tuple[int, np.ndarray, np.ndarray, int] | None = None
        self._at = 0
        #: vectors that were sent
        self.sent = 0

    def inputs(self, i: manager.Inputs) -> Inputs:
        """What stands at the inputs of the device."""
        if i.drafted is not None and self._vector is None:
            self._vector, self._at = self._cut(*i.drafted), 0
        beat = None
        if i.drafted is not None and self._vector is not None:
            beat = _beat(self._vector, self._at)
        return Inputs(i.requests, beat, i.verdicts, i.draft_ready, i.verify_ready, i.emitted_ready)

    def outputs(self, i: Inputs, o: Outputs) -> manager.Outputs:
        """What the engines see; a draft token was taken with its vector's last beat."""
        taken = False
        if i.logits is not None and o.logits_ready:
            taken = i.logits.last
            self._at += 1
            if taken:
                self._vector = None
            self.sent += taken
        return manager.Outputs(o.requests_ready, taken, o.verdicts_ready, o.draft, o.verify, o.emitted, o.busy,
                               o.mapping)

    @property
    def began(self) -> bool:
        """Whether a beat of the vector at hand was taken."""
        return self._vector is not None and self._at > 0

    @property
    def left(self) -> int:
        """Beats of the vector at hand that were not taken."""
        return 0 if self._vector is None else len(self._vector[1]) - self._at

    def skip(self, beats: int) -> tuple[np.ndarray, np.ndarray]:
        """Codes and masks of the next beats, which were taken; not the vector's last one."""
        assert self._vector is not None
        assert beats < self.left
        part = slice(self._at, self._at + beats)
        self._at += beats
        return self._vector[1][part].reshape(-1), self._vector[2][part].reshape(-1)

    def split(self, request: int, token: int, probability: int) -> list[LogitsBeat]:
        """The beats of a draft token."""
        vector_ = self._cut(request, token, probability)
        return [_beat(vector_, at) for at in range(len(vector_[1]))]

    def _cut(self, request: int, token: int, probability: int) -> tuple[int, np.ndarray, np.ndarray, int]:
        """A vector by beats."""
        codes, keep, given = self._make(request, token, probability)
        lanes = self.p.logit_lanes
        size = -(-len(codes) // lanes) * lanes
        # what is behind the end must not count
        data, kept = np.full(size, 0x7FFFFFFF, np.uint32), np.zeros(size, bool)
        data[:len(codes)], kept[:len(codes)] = codes, keep
        return request, data.reshape(-1, lanes), kept.reshape(-1, lanes), given


def _beat(cut: tuple[int, np.ndarray, np.ndarray, int], at: int) -> LogitsBeat:
    """A beat of a vector."""
    request, codes, keep, given = cut
    return LogitsBeat(request, tuple(codes[at].tolist()), sum(int(k) << n for n, k in enumerate(keep[at])),
                      at + 1 == len(codes), given)


def payloads(p: SaddleManagerParams, i: Inputs) -> dict[str, int | None]:
    """Payloads of the input streams; None where nothing is offered."""
    widths = Widths.of(p)
    out: dict[str, int | None] = {
        name: None if value is None else packed(getattr(widths, name), value)
        for name, value in (("requests", i.requests), ("verdicts", i.verdicts))}
    out["logits"] = None if i.logits is None else _payload(p, i.logits)
    return out


def logit_payloads(p: SaddleManagerParams, beats: list[LogitsBeat]) -> np.ndarray:
    """Payloads of beats as :meth:`tb.common.native.NativeSim.push` takes them, uint8 (beats, bytes)."""
    size = -(-sum(_widths(p)) // 8)
    return np.array([[*_payload(p, beat).to_bytes(size, "little")] for beat in beats], np.uint8)


def _widths(p: SaddleManagerParams) -> tuple[int, ...]:
    return (p.request_width, *(32,) * p.logit_lanes, p.logit_lanes, 1, 1, p.token_width)


def _payload(p: SaddleManagerParams, beat: LogitsBeat) -> int:
    return packed(_widths(p), (beat.request, *beat.codes, beat.keep, int(beat.last), int(beat.given >= 0),
                               max(beat.given, 0)))


def read_outputs(p: SaddleManagerParams, value: Callable[[str], int]) -> Outputs:
    """Outputs from the values of ports."""
    widths = Widths.of(p)
    fields: dict[str, Any] = {f"{name}_ready": bool(value(f"{name}__ready")) for name in IN}
    for name in OUT:
        valid = value(f"{name}__valid")
        fields[name] = unpacked(getattr(widths, name), value(f"{name}__payload")) if valid else None
    return Outputs(**fields, busy=bool(value("busy")), mapping=(value("dlm_fc"), value("tlm_attention")),
                   irq=bool(value("irq")))


def register_words(p: SaddleManagerParams, switches: Switches, *, interrupt: bool = False) -> list[tuple[int, int]]:
    """Address and word of every register that must be written for these settings; with both interrupts or none."""
    word, layout, out = settings_value(p, switches), manager_settings(p), []
    for register in registers(p):
        if register.writable:
            value = 0
            for f in register.fields:
                if f.name in ("interrupt", "error_interrupt"):
                    value |= int(interrupt) << f.low
                elif f.name not in ("acknowledged", "errors_acknowledged"):
                    field = layout[f.name]
                    value |= (word >> field.offset & ((1 << field.width) - 1)) << f.low
            out.append((register.address, value))
    return out


def address(p: SaddleManagerParams, name: str) -> int:
    """Of a register."""
    return next(r.address for r in registers(p) if r.name == name)
