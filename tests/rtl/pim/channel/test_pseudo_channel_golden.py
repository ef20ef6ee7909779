"""The golden models of the pseudo-channel and of a bank against numbers worked out by hand, and numpy."""

import dataclasses

import numpy as np
import pytest

from sim_models.golden.pim.bank.dram_bank import BankInputs, DramBank
from sim_models.golden.pim.channel.channel_commands import REDUCES, Command, status, words
from sim_models.golden.pim.channel.channel_timeline import Timeline, Times
from sim_models.golden.pim.channel.pseudo_channel import PseudoChannel
from sim_models.params.base import ParamError
from sim_models.params.pim.bank.dram_bank import TIMINGS, DramBankParams
from sim_models.params.pim.channel.pseudo_channel import PseudoChannelParams

P = PseudoChannelParams()
MAC = Command(op="mac", count=4, outputs=1, clear=True)


def _times(p: PseudoChannelParams, *commands: Command) -> list[Times]:
    return Timeline(p).run(commands)


def test_one_product_step_by_step() -> None:
    """HBM3: accepted in 0, dispatched in 3, row opened in 4, words from 4 + 7 on, one every 2 cycles."""
    mac, read = _times(P, MAC, Command(op="read", outputs=1, reduce="none"))
    assert (mac.dispatched, mac.started, mac.done, mac.response) == (3, 4, 4 + 7 + 3 * 2, 18)
    assert (mac.cycles, mac.hits, mac.misses) == (14, 3, 1)
    # the last word reaches the element cl + 1 cycles later, and its accumulator after the element's latency
    first = mac.done + P.cl + 1 + P.pe.latency
    assert (read.dispatched, read.done) == (4, first + 3)
    assert read.beats == [first + k + P.pe.read_latency + 5 for k in range(4)]


def test_words_follow_one_another_over_rows_and_commands() -> None:
    """Two open rows: the next row is opened meanwhile, also that of the next command; one: rtp + rp + rcd."""
    long = dataclasses.replace(MAC, count=32, outputs=8)
    for p, row in ((P, 64), (P.replace(open_rows=1), 62 + 3 + 7 + 7)):
        one, two = (_times(p, dataclasses.replace(long, outputs=n))[0].cycles for n in (8, 9))
        assert two - one == row
        # the second command begins with the row that follows, or with any other of the other parity
        for address in (256, 512 + 6 * 32):
            first, second = _times(p, long, dataclasses.replace(long, address=address, count=8, outputs=1))
            assert second.done - first.done == 8 * 2 + row - 64
    # same parity, another row: even two row buffers do not help
    first, second = _times(P, long, dataclasses.replace(long, address=256 + 32, count=8, outputs=1))
    assert second.done - first.done == 3 + 7 + 7 + 7 * 2


def test_a_refresh_costs_closing_refreshing_and_opening() -> None:
    """Due in 3900: the words of that moment's row wait until rows are closed, and tRFC is over."""
    long = dataclasses.replace(MAC, count=128, outputs=16)
    without, with_one = (_times(P.replace(refi=refi), long)[0].cycles for refi in (60000, 3900))
    # rows are closed rtp after the last word, the other one a cycle later at the latest; then rp, rfc and rcd
    assert 3 + 7 + 260 + 7 - 2 <= with_one - without <= 3 + 1 + 7 + 260 + 7
    times = _times(P, *[long] * 12)
    # 64 rows each, and the one that was closed in the middle once more
    assert {t.misses for t in times} == {65, 66}
    assert {t.hits + t.misses for t in times} == {2048}


@pytest.mark.parametrize(("changes", "between", "least"), [
    ({}, 0.99, 0.92), ({"open_rows": 1}, 0.81, 0.75), ({"ccd": 1}, 0.99, 0.92), ({"rfc": 350}, 0.99, 0.9)],
    ids=["hbm3", "one open row", "a word a cycle", "8 Gbit a channel"])
def test_share_of_what_the_banks_allow(changes: dict[str, int], between: float, least: float) -> None:
    """K = N = 512 in FP16: 16 outputs of 32 words per bank and command; without refreshes, and over many."""
    p = P.replace(**changes)
    block = dataclasses.replace(MAC, count=32, outputs=16)
    blocks = [dataclasses.replace(block, address=k % 8 * 512, first=k % 2 * 16) for k in range(60)]
    alone, many = _times(p, *blocks[:2]), _times(p, *blocks)
    assert 2 * 512 * p.ccd / sum(t.cycles for t in alone) >= between
    assert len(blocks) * 512 * p.ccd / many[-1].done >= least


def test_commands_that_are_wrong() -> None:
    """The edge on both sides."""
    def of(**fields: object) -> str:
        return status(P, Command(**{"op": "mac", "count": 1, "outputs": 1, **fields}))      # type: ignore[arg-type]
    assert of() == "ok"
    assert [of(count=0), of(outputs=0), of(op="read", count=0), of(op="load", count=0)] == [
        "count", "count", "ok", "count"]
    assert [of(address=P.words - 6, count=2, outputs=n) for n in (3, 4)] == ["ok", "address"]
    assert [of(op="write", address=P.words - 1, count=n) for n in (1, 2)] == ["ok", "address"]
    assert [of(op="load", base=P.buffer_words - 1, count=n) for n in (1, 2)] == ["ok", "buffer"]
    assert [of(base=508, spread="bank", count=n) for n in (1, 2)] == ["ok", "buffer"]
    assert [of(base=b, spread="group") for b in (3, 4)] == ["buffer", "ok"]
    assert [of(first=15, outputs=n) for n in (1, 2)] == ["ok", "accumulator"]
    assert [of(first=f, outputs=16) for f in (16, 17, 32)] == ["ok", "accumulator", "accumulator"]
    assert of(spread="invalid") == "format"
    for built, int8, want in (("fp16", False, "ok"), ("fp16", True, "format"), ("int8", False, "format"),
                              ("int8", True, "ok")):
        assert status(P.replace(format=built), dataclasses.replace(MAC, int8=int8)) == want


@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize("spread", ["all", "bank", "group"])
def test_products_are_those_of_numpy(spread: str, int8: bool) -> None:
    """Small integers, exact in every format: all reductions of accumulators that were added to twice."""
    p = PseudoChannelParams(**TIMINGS["fast"], lanes=2, rows=8, columns=4, buffer_words=32, accumulators=8)
    gen = np.random.default_rng(1)
    n = 4 if int8 else 2
    rows, vector = gen.integers(-9, 10, (4, 4, 30, n)), gen.integers(-9, 10, (32, n))

    def coded(numbers: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(numbers.astype(np.int8 if int8 else np.float16)).view(np.uint16)
    mac = Command(op="mac", address=3, count=3, base=4, first=5, outputs=2, spread=spread, int8=int8)
    commands = [Command(op="load", count=32)]
    commands += [Command(op="write", count=30, group=g, bank=b) for g in range(4) for b in range(4)]
    commands += [dataclasses.replace(mac, clear=True), dataclasses.replace(mac, address=9)]
    commands += [Command(op="read", first=5, outputs=2, reduce=r, int8=int8) for r in REDUCES]
    outcome = PseudoChannel(p).run(commands, np.concatenate([coded(vector), coded(rows).reshape(-1, 2)]))

    want = np.zeros((2, 4, 4), np.int64)
    for g in range(4):
        for b in range(4):
            for r in range(2):
                for c in range(3):
                    at = {"all": 4 + c, "bank": 4 + 4 * c + b, "group": 4 + 4 * c + g}[spread]
                    want[r, g, b] += (rows[g, b, 3 + 3 * r + c] + rows[g, b, 9 + 3 * r + c]) @ vector[at]
    unit = 1 if int8 else 1 << 48
    got = [[0 if s is None else s.value for s in beat] for beat in outcome.beats]
    wanted = [*want.transpose(0, 2, 1).reshape(8, 4), *want.sum(2), *want.sum(1),
              *([total, 0, 0, 0] for total in want.sum((1, 2)))]
    assert got == [[int(v) * unit for v in beat] for beat in wanted]
    assert [k for k, last in enumerate(outcome.last) if last] == [7, 9, 11, 13]
    assert outcome.int8 == [int8] * 14


def test_words_must_be_as_many_as_the_commands_take() -> None:
    with pytest.raises(ValueError, match=r"^3 words of data were wanted, 2 came$"):
        PseudoChannel(P).run([Command(op="load", count=3)], np.zeros((2, 16), np.uint16))
    assert words(Command(op="load", base=1 << 15, count=3)) == 3


def test_sums_without_a_value_stay_so() -> None:
    """Adding to an accumulator that was never started gives nothing; a reset takes values away."""
    model = PseudoChannel(P)
    read = Command(op="read", outputs=1, reduce="all")
    assert model.run([dataclasses.replace(MAC, clear=False), read]).beats[0][0] is None
    assert model.run([MAC, read]).beats[0][0] is not None
    model.reset()
    assert model.run([read]).beats[0][0] is None


def test_bank_reports_the_first_fault_and_counts_all() -> None:
    p = DramBankParams(lanes=1, rows=4, columns=4, **TIMINGS["fast"])
    bank = DramBank(p)
    for i in (BankInputs(column_op="read"), BankInputs(row_op="refresh"), BankInputs(row_op="refresh")):
        bank.step(i)
    assert (bank.error, bank.errors, bank.hits, bank.misses) == ("closed", 2, 0, 0)
    bank.reset()
    assert (bank.error, bank.errors) == ("none", 0)


def test_parameters_that_cannot_be() -> None:
    with pytest.raises(ParamError, match=r"^rows must be a power of two, not 100$"):
        DramBankParams(rows=100)
    with pytest.raises(ParamError, match=r"^refi must be at least 590, twice what a refresh keeps a bank busy with"):
        DramBankParams(refi=589)
    with pytest.raises(ParamError, match=r"^buffer_words must be a power of two, not 96$"):
        PseudoChannelParams(buffer_words=96)
    with pytest.raises(ParamError, match=r"^accumulators must be at least 4 in a pseudo-channel"):
        PseudoChannelParams(accumulators=2)
    for values in TIMINGS.values():
        DramBankParams(**values)
