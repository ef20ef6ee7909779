"""What a waveform records, its view, and what a failing comparison says of it."""

import dataclasses
import re

import pytest
import pywellen

from gen.emit.emit import emit
from gen.errors import UserError
from rtl.registry import BLOCKS
from tb.common.waves import Recording, check_scope, save_view, with_fields, with_quiet_nets
from tests.designs.run import run_echo
from tests.designs.units import Echo

#: the first beat with a wrong lane: two cycles of reset, then offered, accepted and passed on
CYCLE, NS = 5, 45
WRONG = (f"data[0, 5] (element 5): got 7 (0x07), want 3 (0x03); 3 of 24 differ, shape (3, 8); "
         f"came in cycle {CYCLE} of the test, at {NS} ns")


@pytest.fixture(scope="module")
def windowed(tmp_path_factory):
    """A failing test with cycles 5 to 8 recorded."""
    return run_echo("bench_bad", tmp_path_factory.mktemp("windowed"), test="wrong_lane", waves=Recording(5, 8))


def test_failing_comparison_says_when_and_how_to_record_it(tmp_path):
    result = run_echo("bench_bad", tmp_path, test="wrong_lane")
    assert [f.message for f in result.failures] == [WRONG]
    assert result.record == "speculoos sim echo --seed 5 --test wrong_lane --waves --from 1 --to 55"
    assert result.waves is result.view is None


def test_recorded_run_fails_at_the_same_place_and_its_view_marks_it(windowed):
    assert [f.message for f in windowed.failures] == [WRONG]
    assert windowed.record is None
    assert windowed.view is not None
    assert f"*-16.000000 {NS * 1000} " in windowed.view.read_text()


def test_wave_holds_the_window_alone(windowed):
    wave = _read(windowed.waves)
    times = [time for var in wave.values() for time, _ in var.tv]
    assert times
    assert min(times) >= 40_000
    assert max(times) < 80_000
    value = wave["echo.o_beat__valid"].signal.value_at(NS * 1000)
    assert int(value) == int(wave["echo.o_beat__ready"].signal.value_at(NS * 1000)) == 1
    assert int(wave["echo.o_beat__payload__data__5"].signal.value_at(NS * 1000)) % 256 == 7
    assert {"echo.clk", "echo.i_beat__valid", "echo.o_beat__payload__data__5", "echo.o_count"} <= set(wave)


def test_view_names_signals_that_the_wave_has(windowed):
    names = set(_read(windowed.waves))
    text = windowed.view.read_text()
    shown = re.findall(r"(?m)^(echo\.[\w.]+)", text)
    assert len(shown) > 20
    assert set(shown) <= names
    assert text.index("-o_beat") < text.index("echo.o_beat__valid") < text.index("echo.o_beat__payload__last")
    files = re.findall(r"(?m)^\^\d+ (.*)$", text)
    assert len(files) == 1
    with open(files[0]) as file:
        assert "9 WRONG_LANE\n" in file.read()


def _read(path):
    """The signals of a wave file by name; times are in picoseconds."""
    assert path.suffix == ".fst", "install the headers of lz4 and zlib"
    wave = pywellen.Waveform(str(path))
    return {re.sub(r"^\$rootio\.", "", var.full_name): var for var in wave.all_vars()}


def test_registers_and_ports_are_recorded_and_other_nets_are_not():
    text = emit(BLOCKS["fifo"].unit(BLOCKS["fifo"].params())).verilog
    on, kept, quiet = True, [], []
    for line in with_quiet_nets(text).splitlines():
        if "verilator tracing" in line:
            on = "tracing_on" in line
        elif match := re.match(r"  (input|output|reg|wire) (?:\[\d+:\d+\] )?(\w+)", line):
            (kept if on else quiet).append(match[1])
    assert set(quiet) == {"wire"}
    assert "wire" not in kept
    assert {"input", "output", "reg"} == set(kept)


def test_fields_of_streams_become_nets_of_the_top():
    design = emit(Echo())
    text = with_fields(design, design.modules["echo"])
    assert "  wire signed [7:0] i_beat__payload__data__7;\n" in text
    assert "  assign i_beat__payload__data__7 = i_beat__payload[63:56];\n" in text
    assert "  assign o_beat__payload__last = o_beat__payload[65:65];\n" in text
    assert text.endswith("endmodule\n")


def test_states_and_enumerations_have_names(tmp_path):
    design = emit(BLOCKS["compute_engine"].unit(BLOCKS["compute_engine"].params()))
    assert design.values["gemm_decoder"]["fsm_state"] == {
        0: "accept", 1: "check", 2: "refuse", 3: "multiply", 4: "wait", 5: "offer"}
    view = save_view(design, Recording(), tmp_path / "waves.fst", None)
    file = re.search(r"\^\d+ (.*)\ncompute_engine\.\w+\.fsm_state\[2:0\]", view.read_text())
    assert file is not None
    with open(file[1]) as names:
        assert names.read() == "0 accept\n1 check\n2 refuse\n3 multiply\n4 wait\n5 offer\n"


def test_window_scope_and_depth_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"^a window ends after it begins: --from 9 --to 8$"):
        Recording(9, 8)
    design = emit(BLOCKS["pe_array"].unit(BLOCKS["pe_array"].params()))
    with pytest.raises(UserError, match=r"^pe_array has no instance 'pe_0_9' \(did you mean 'pe_0_"):
        check_scope(design, Recording(scope="pe_0_9"))
    check_scope(design, Recording(scope="pe_0_1"))
    clockless = dataclasses.replace(design, ports={design.top: ()})
    with pytest.raises(UserError, match=r"^pe_array has no clock, so that --from and --to have no cycles to count$"):
        check_scope(clockless, Recording(1, 2))


def test_options_repeat_a_recording():
    assert Recording(3, 9, "a.b", 2, True).options() == [
        "--waves", "--from", "3", "--to", "9", "--scope", "a.b", "--depth", "2", "--nets"]
    assert Recording(scope="a", depth=2).arguments("top") == ["+waves_scope+top.a", "+waves_depth+2"]
    assert Recording(last=4).window == (1, 4)


def test_scope_narrows_what_is_recorded(windowed, tmp_path):
    """The scope is the top itself here: without it, its ports are recorded a second time as those of the design."""
    result = run_echo("bench_bad", tmp_path, test="wrong_lane", waves=Recording(5, 8, depth=1))
    names = {var.full_name for var in _read(result.waves).values()}
    assert names
    assert all(re.fullmatch(r"echo\.[\w.\[\]]+", name) for name in names)
    assert any(not name.startswith("echo.") for name in (v.full_name for v in _read(windowed.waves).values()))
