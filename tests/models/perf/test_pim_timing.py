"""The timing model of the stack by hand-made numbers; `test_pim_stack_native` compares it with the RTL."""

import numpy as np
import pytest

from sim_models.golden.pim.stack.pim_stack import Command, Work
from sim_models.mapping.pim import Attention, Gemv, in_a_row
from sim_models.params.pim.stack.pim_stack import PimStackParams
from sim_models.perf.pim_timing import StackTiming, bank_cycles

P = PimStackParams(pseudo_channels=1)


def products(p: PimStackParams, k: int, n: int, count: int) -> list[Work]:
    mapping = Gemv(p, np.zeros((k, n), np.float16))
    return in_a_row([mapping.run(np.zeros(k, np.float16), turn=at % 2) for at in range(count)])


def test_a_product_of_one_word() -> None:
    """A LOAD of a word, a MAC of one, a READ of one sum over nothing: every step has its known length."""
    course = StackTiming(P).program(products(P, 16, 16, 1))
    load = 3 + 3 + 1                                # checked by stack and pseudo-channel; the word is taken
    mac = load + 1 + 1                              # in the cycle after that the MAC goes to the sequencer
    read = mac + P.rcd + 1                          # the row is opened first
    # the row's command leaves a cycle later, like the word's
    summed = read + P.cl + P.pe.latency
    beats = summed + P.pe.read_latency + 5 + 3      # four banks, one a cycle
    assert (course.hits, course.misses) == (0, 1)
    assert course.end == beats + 2 + P.rounder.stages


def test_long_products_read_a_word_each_ccd_between_refreshes() -> None:
    work = products(P, 512, 512, 8)
    course = StackTiming(P).program(work)
    banks = bank_cycles(P, work)
    assert banks == 8 * 2 * 32 * 32
    refreshes = course.end // P.refi
    lost = course.cycles - banks - refreshes * (P.rfc + P.rp + P.rcd + P.rtp)
    assert refreshes == 4
    assert 0 < lost < 0.02 * banks
    assert course.hit_rate > 1 - 1 / P.columns - 0.005


def test_one_open_row_costs_a_gap_for_each_row() -> None:
    plain = P.replace(open_rows=1)
    work = products(P, 512, 512, 4)
    rows = 4 * 32 * 32 // P.columns
    lost = StackTiming(plain).program(work).cycles - StackTiming(P).program(work).cycles
    # RTP + RP + RCD instead of CCD, less where a refresh closes the row anyway
    assert (rows - 8) * 15 < lost < rows * 17


def test_sums_over_pseudo_channels_take_turns() -> None:
    """One beat a cycle leaves the stack: with little to compute, that is what more pseudo-channels wait for."""
    sizes = [StackTiming(P.replace(pseudo_channels=c)).program(products(P.replace(pseudo_channels=c), 16, 256 * c, 1))
             for c in (1, 4)]
    assert sizes[1].cycles - sizes[0].cycles >= 3 * 256 // 4 - 10


def test_attention_grows_with_its_length() -> None:
    ends = []
    for length in (1, 17, 255, 1024):
        mapping = Attention(P, 64, length)
        ends.append(StackTiming(P).program(mapping.run(np.zeros(64, np.float16), length)).end)
    assert ends == sorted(ends)
    assert ends[-1] > 1024 // 16 * 4 + 1024 // 64 * 16 * 2


@pytest.mark.parametrize(("command", "message"), [
    (Command(op="write", mask=1, count=1), "LOAD, MAC or READ of all pseudo-channels was wanted, write of 0b1 came"),
    (Command(op="read", mask=0), "LOAD, MAC or READ of all pseudo-channels was wanted, read of 0b0 came"),
])
def test_what_the_model_does_not_know_is_refused(command: Command, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        StackTiming(P).program([Work(command)])
