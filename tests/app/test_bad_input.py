"""A catalogue of wrong inputs: each has one sentence, an exit code, and leaves nothing behind."""

import dataclasses
import functools
import json
import os
import re
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rtl.registry import BLOCKS
from sim_models.params.tile.engine.compute_engine import ComputeEngineParams
from sim_models.transformer.checkpoint import ModelShape, random_checkpoint
from sim_models.transformer.formats.llama2c import save_llama2c, save_tokenizer
from sim_models.transformer.smollm2 import smollm2_file
from sim_models.transformer.tokenizer import Tokenizer, byte_pieces
from speculoos.cli import COMMANDS, main
from tests.models.transformer.formats.gguf_files import SHAPE as GGUF_SHAPE
from tests.models.transformer.formats.gguf_files import add_vocabulary, write

#: what acc_width is when nothing is said
ACC = ComputeEngineParams().acc_width
ENGINE = 'name = "e"\nblock = "compute_engine"\n'
MODEL = ("[model]\ndim = 64\nhidden_dim = 172\nn_layers = 5\nn_heads = 8\nn_kv_heads = 4\nvocab_size = 512\n"
         "max_seq_len = 512\n")


DEEP = "[" * 2000
LARGE = "0x" + "f" * 4000


@dataclasses.dataclass(frozen=True)
class Case:
    """A command, the files it finds, and what it says."""

    name: str
    command: str
    message: str
    #: files by name: text, bytes, or what makes the bytes
    files: dict[str, str | bytes | Callable[[], bytes]] = dataclasses.field(default_factory=dict)
    code: int = 2
    #: words that the command line would split
    last: tuple[str, ...] = ()
    #: prepares what files cannot say: a pipe, a folder
    prepare: Callable[[Path, pytest.MonkeyPatch], None] = lambda folder, monkeypatch: None


def file_case(name: str, content: str | bytes, message: str) -> Case:
    """A configuration file that is wrong."""
    return Case(f"file: {name}", "check f.toml", message, {"f.toml": content})


CONFIGURATION = [
    file_case("empty", "", "f.toml:1:1: missing key 'name'"),
    file_case("thousands of digits", f"{ENGINE}[params]\nrows = {LARGE}\n", "f.toml: a number has too many digits"),
    file_case("no block", '# c\nname = "e"', "f.toml:1:1: missing key 'block'"),
    file_case("top key misspelt", 'name = "e"\nblok = "pe"',
              "f.toml:2:1: unknown key 'blok' (did you mean 'block'?)"),
    file_case("top key unknown", f"{ENGINE}\n  'a b' = 1",
              "f.toml:4:3: unknown key 'a b', only name, description, block, params, model"),
    file_case("table misspelt", f"{ENGINE}[parms]\nrows = 4",
              "f.toml:3:2: unknown key 'parms' (did you mean 'params'?)"),
    file_case("parameter above the table", f"{ENGINE}rows = 4",
              "f.toml:3:1: unknown key 'rows', it belongs in [params]"),
    file_case("parameter in another table", f"{ENGINE}{MODEL}cols = 4",
              "f.toml:11:1: unknown key 'cols' in [model], it belongs in [params]"),
    file_case("top key in a table", f"{ENGINE}[params]\ndescription = 'x'",
              "f.toml:4:1: unknown key 'description' in [params], it belongs above the first table"),
    file_case("parameter misspelt", f"{ENGINE}[params] # c\n\n  \"colls\" = 4",
              "f.toml:5:3: unknown key 'colls' in [params] (did you mean 'cols'?)"),
    file_case("parameter misspelt, dotted", f"{ENGINE}params . Rowz = 4",
              "f.toml:3:10: unknown key 'Rowz' in [params] (did you mean 'rows'?)"),
    file_case("parameter misspelt, inline", f"{ENGINE}params = {{rows = 4, kols = 3}}",
              "f.toml:3:21: unknown key 'kols' in [params] (did you mean 'cols'?)"),
    file_case("parameter of another block", 'name = "e"\nblock = "pe"\nparams.zyx = 4',
              "f.toml:3:8: unknown key 'zyx' in [params], only " +
              ", ".join(f.name for f in dataclasses.fields(BLOCKS["pe"].params))),
    file_case("model key misspelt", f"{ENGINE}{MODEL}n_kvheads = 4",
              "f.toml:11:1: unknown key 'n_kvheads' in [model] (did you mean 'n_kv_heads'?)"),
    file_case("model key missing", f"{ENGINE}{MODEL.replace('n_heads = 8', '')}",
              "f.toml:3:2: missing key 'n_heads' in [model]"),
    file_case("model contradicts itself", f"{ENGINE}{MODEL.replace('n_kv_heads = 4', 'n_kv_heads = 3')}",
              "f.toml:8:1: n_kv_heads must divide n_heads = 8, not 3"),
    file_case("model width", f"{ENGINE}{MODEL.replace('dim = 64', 'dim = 72', 1)}",
              "f.toml:4:1: dim must be a multiple of twice n_heads = 8 (rotary positions turn pairs), "
              "not 72"),
    file_case("table below a parameter", f"{ENGINE}[params.rows]\nx = 1",
              "f.toml:3:9: rows must be an integer, not a table"),
    file_case("array of tables", f"{ENGINE}[[params]]\nrows = 1",
              "f.toml:3:3: params must be a table, not an array"),
    file_case("text for a number", f"{ENGINE}[params]\nrows = '8'",
              "f.toml:4:1: rows must be an integer, not '8'"),
    file_case("fraction for a number", f"{ENGINE}[params]\nrows = 8.0",
              "f.toml:4:1: rows must be an integer, not 8.0"),
    file_case("truth value for a number", f"{ENGINE}[params]\nrows = true",
              "f.toml:4:1: rows must be an integer, not True"),
    file_case("number for a truth value", 'name = "x"\nblock = "ram"\n[params]\nread_old = 1',
              "f.toml:4:1: read_old must be true or false, not 1"),
    file_case("date for a name", 'name = 1979-05-27\nblock = "pe"',
              "f.toml:1:1: name must be a string, not the date 1979-05-27"),
    file_case("zero", f"{ENGINE}[params]\ncols = 0", "f.toml:4:1: cols must be from 1 to 64, not 0"),
    file_case("negative", f"{ENGINE}params.rows = -8", "f.toml:3:8: rows must be from 2 to 64, not -8"),
    file_case("huge", f"{ENGINE}[params]\nweight_depth = 1_000_000",
              "f.toml:4:1: weight_depth must be from 2 to 16384, not 1000000"),
    file_case("mode that there is not", f"{ENGINE}[params]\nmodes = 'dual'",
              "f.toml:4:1: modes must be one of both, systolic, vector, not dual"),
    file_case("accumulator too narrow", f"{ENGINE}[params]\noperand_width = 8\nacc_width = 12",
              "f.toml:5:1: acc_width must be at least 16 for operand_width = 8, not 12"),
    file_case("accumulator too narrow by default", f"{ENGINE}[params]\noperand_width = 16",
              f"f.toml:3:2: acc_width must be at least 32 for operand_width = 16, not {ACC}"),
    file_case("partial sum too narrow", f"{ENGINE}[params]\npsum_width = 20",
              f"f.toml:4:1: psum_width must be at least acc_width = {ACC}, not 20"),
    file_case("block unknown", 'name = "e"\nblock = "compute_engin"',
              "f.toml:2:1: there is no block 'compute_engin' (did you mean 'compute_engine'?), only " +
              ", ".join(BLOCKS)),
    file_case("block unknown and no name", 'block = "compute_engin"',
              "f.toml:1:1: there is no block 'compute_engin' (did you mean 'compute_engine'?), only " +
              ", ".join(BLOCKS)),
    file_case("name with a blank", 'block = "pe"\nname = "my pe"',
              "f.toml:2:1: name must be lower-case letters, digits and underscores, not 'my pe'"),
    file_case("description of two lines", f'{ENGINE}description = "a\\nb"',
              "f.toml:3:1: description must be one line"),
    file_case("key twice", f'{ENGINE}\nname = "f"', "f.toml:4:1: name is already set in line 1"),
    file_case("table twice", f"{ENGINE}[params]\nrows = 4\n[params]\nrows = 5",
              "f.toml:5:2: params is already set in line 3"),
    file_case("parameter twice", f"{ENGINE}[params]\nrows = 4\n\n  rows = 5",
              "f.toml:6:3: params.rows is already set in line 4"),
    file_case("key twice in a broken file", f'{ENGINE}name = "f"\n[[[',
              "f.toml:3:1: name is already set in line 1"),
    file_case("text without end", 'name = "e\n', "f.toml:1:10: illegal character '\\n'"),
    file_case("no value", f"{ENGINE}[params]\nrows =", "f.toml:4:7: invalid value"),
    file_case("not TOML", "name: e\n", "f.toml:1:5: expected '=' after a key in a key/value pair"),
    file_case("not UTF-8", b'name = "e"\nblock = "p\xe9"',
              "f.toml:2:11: the file is not UTF-8 text (byte 0xe9)"),
    file_case("UTF-16", "name = 1".encode("utf-16"), "f.toml:1:1: the file is not UTF-8 text (byte 0xff)"),
    file_case("byte order mark", b"\xef\xbb\xbfname = 1\nblock = 'pe'",
              "f.toml:1:1: name must be a string, not 1"),
    file_case("binary", bytes(16), "f.toml:1:1: invalid statement"),
    file_case("nested without end", "a = " + "[" * 5000, "f.toml: arrays or tables are nested too deeply"),
    file_case("endless number", f"a = {'9' * 5000}", "f.toml: a number has too many digits"),
    file_case("much too long", "#" * (1 << 20) + "#",
              "f.toml has 1048577 bytes, a configuration has at most 1048576"),
    Case("file: none", "check no.toml", "no.toml: there is no such file"),
    Case("file: a folder", "check .", ". is a folder, a TOML file is needed"),
    Case("file: a pipe", "check p.toml", "p.toml is not a regular file, a TOML file is needed",
         prepare=lambda folder, _: os.mkfifo(folder / "p.toml")),
]

COMMAND_LINE = [
    Case("command misspelt", "verliog pe", "there is no command 'verliog' (did you mean 'verilog'?)"),
    Case("command unknown", "xyz", f"there is no command 'xyz', only {', '.join(COMMANDS)}"),
    Case("option before the command", "--json f list",
         f"there is no option '--json', only {', '.join(COMMANDS)}"),
    Case("option misspelt", "sim pe --wave",
         "unknown option '--wave' (did you mean '--waves'?); see `speculoos sim --help`"),
    Case("argument too many", "list pe", "unknown argument 'pe'; see `speculoos list --help`"),
    Case("argument missing", "new", "the following arguments are required: NAME; see `speculoos new --help`"),
    Case("option without a value", "list --json",
         "argument --json: expected one argument; see `speculoos list --help`"),
    Case("design misspelt", "check pe_aray",
         "there is no block or preset 'pe_aray' (did you mean 'pe_array'?); `speculoos list` shows them all"),
    Case("design unknown", "sim xyz", "there is no block or preset 'xyz'; `speculoos list` shows them all"),
    Case("preset misspelt", "verilog engine_smal -o out",
         "there is no block or preset 'engine_smal' (did you mean 'engine_small'?); "
         "`speculoos list` shows them all"),
    Case("no design", "check", "one of DESIGN, --model and --schema is needed, not none"),
    Case("two things to check", "check pe --schema",
         "one of DESIGN, --model and --schema is needed, not DESIGN and --schema"),
    Case("--set without a design", "check --schema --set rows=4", "--set needs DESIGN"),
    Case("--set without =", "check pe_array --set rows", "--set needs NAME=VALUE, not 'rows'"),
    Case("--set without a name", "check pe_array --set =4", "--set needs NAME=VALUE, not '=4'"),
    Case("--set without a value", "check pe_array --set rows=", "--set needs NAME=VALUE, not 'rows='"),
    Case("--set misspelt", "check pe_array --set row=4",
         "--set row=4: pe_array has no parameter 'row' (did you mean 'rows'?)"),
    Case("--set twice", "check pe_array --set rows=4 --set rows=8", "--set rows=8: rows is set twice"),
    Case("--set text", "check pe_array --set rows=four",
         "--set rows=four: rows must be an integer, not 'four'"),
    Case("--set Python's truth", "check ram --set read_old=False",
         "--set read_old=False: read_old must be true or false, not 'False'"),
    Case("--set more TOML", "check pe_array",
         "--set rows=4\ncols=4: rows must be an integer, not '4\\ncols=4'", last=("--set", "rows=4\ncols=4")),
    Case("test without a name", "sim pe", "the bench of pe has no test '', only random_inputs, modes_in_runs, "
                                          "wraps_like_the_model", last=("--test", "")),
    Case("--set zero", "sim pe_array --set cols=0", "--set cols=0: cols must be from 1 to 64, not 0"),
    Case("--set negative", "verilog pe_array -o out --set rows=-1",
         "--set rows=-1: rows must be from 2 to 64, not -1"),
    Case("--set contradiction", "check pe_array --set operand_width=8 --set acc_width=12",
         "--set operand_width=8 acc_width=12: acc_width must be at least 16 for operand_width = 8, not 12"),
    Case("--json into a missing folder", "list --json no/l.json", "--json no/l.json: there is no folder no"),
    Case("--json onto a folder", "list --json .", "--json needs a file, . is a folder"),
    Case("--json onto a device", "list --json /dev/null", "--json needs a file, /dev/null is a device"),
    Case("--set nested too deeply", "check pe_array",
         f"--set rows={DEEP}: rows must be an integer, not {DEEP!r}", last=("--set", f"rows={DEEP}")),
    Case("--set of thousands of digits", "check pe_array",
         f"--set rows={LARGE}: rows must be an integer, not {LARGE!r}", last=("--set", f"rows={LARGE}")),
    Case("--json below a file", "list --json f/l.json", "--json f/l.json: there is no folder f", {"f": ""}),
    Case("--json into a locked folder", "list --json l.json", "--json l.json: the folder . is not writable",
         prepare=lambda _, monkeypatch: monkeypatch.setattr("os.access", lambda *_: False)),
    Case("new over a file", "new mine", "mine.toml exists already and is not overwritten",
         {"mine.toml": "mine"}),
    Case("new over a device", "new mine -o /dev/null", "/dev/null exists already and is not overwritten"),
    Case("new with a preset's name", "new engine",
         "engine is the name of a preset already, the new design needs another"),
    Case("new with a block's name", "new pe",
         "pe is the name of a block already, the new design needs another"),
    Case("new with a keyword as name", "new module",
         "module cannot be the name of a top module, because it is a reserved word of Verilog: "
         "choose another"),
    Case("new with a name of generated modules", "new fifo_w35",
         "fifo_w35 cannot be the name of a top module, because generated modules of the block 'fifo' have such "
         "names: choose another"),
    Case("new with a path as name", "new a/b",
         "a name must be lower-case letters, digits and underscores, not 'a/b'"),
    Case("new from nothing", "new mine --from engin",
         "there is no block or preset 'engin' (did you mean 'engine'?); `speculoos list` shows them all"),
    Case("new in a missing folder", "new mine -o no/mine.toml", "no/mine.toml: there is no folder no"),
    Case("verilog without a folder", "verilog pe", "a folder to write was wanted, as in -o DIR"),
    Case("verilog without a folder, of no design", "verilog pee",
         "there is no block or preset 'pee' (did you mean 'pe'?); `speculoos list` shows them all"),
    Case("verilog with an empty prefix", "verilog pe -o out", "--prefix needs at least one character",
         last=("--prefix", "")),
    Case("verilog with a word for a clock", "verilog pe -o out --clock abc",
         "argument --clock: a clock of more than 0 and at most 10000 MHz was wanted, not 'abc'; "
         "see `speculoos verilog --help`"),
    Case("verilog without a clock", "verilog pe -o out --clock nan",
         "argument --clock: a clock of more than 0 and at most 10000 MHz was wanted, not 'nan'; "
         "see `speculoos verilog --help`"),
    Case("verilog into a foreign folder", "verilog pe -o d",
         "d holds files but no manifest of Speculoos: choose a new or empty folder",
         prepare=lambda folder, _: _write(folder / "d", "mine.v")),
    Case("verilog over a folder with a file more", "verilog pe -o d",
         "d holds mine.v, which Speculoos did not write: move it, or choose another folder",
         prepare=lambda folder, _: _write(folder / "d", "mine.v", "manifest.json")),
    Case("verilog onto a file", "verilog pe -o f", "f is a file: a folder was wanted", {"f": ""}),
    Case("verilog onto a link that leads to itself", "verilog pe -o loop",
         "loop is a symbolic link that leads to itself: a folder was wanted",
         prepare=lambda folder, _: (folder / "loop").symlink_to("loop")),
    Case("verilog below a file", "verilog pe -o f/out", "cannot write f/out: File exists", {"f": ""}, code=1),
    Case("verilog into the current folder", "verilog pe -o .",
         ". is the current folder, which cannot be replaced: name a folder below it"),
    Case("verilog into the void", "verilog pe -o /proc/out", "cannot write /proc/out: No such file or directory",
         code=1),
    Case("synth for an unknown device", "synth pe --target ice40",
         "argument --target: invalid choice: 'ice40' (choose from 'xcup', 'xc7', 'ecp5', 'osu018'); "
         "see `speculoos synth --help`"),
    Case("synth placed for another device", "synth pe --place",
         "--place has no effect here: place and route is there for --target ecp5, not for xcup"),
    Case("synth compares what has no modes", "synth ram --compare",
         "--compare needs a block with both array modes, and ram has none"),
    Case("bench of no rows", "bench engine --m 0",
         "argument --m: sizes from 1 to 1048576 were wanted, as 9 or 1-17 or 1,8,64, not '0'; "
         "see `speculoos bench engine --help`"),
    Case("bench of a negative size", "bench engine --k=-64",
         "argument --k: sizes from 1 to 1048576 were wanted, as 9 or 1-17 or 1,8,64, not '-64'; "
         "see `speculoos bench engine --help`"),
    Case("bench in an unknown mode", "bench engine --mode systolical",
         "argument --mode: there is no mode 'systolical' (did you mean 'systolic'?), only auto, systolic, vector; "
         "see `speculoos bench engine --help`"),
    Case("bench in a mode that is not built", "bench engine_vector --mode systolic",
         "mode systolic is not built into this engine, only auto and vector"),
    Case("bench of something else", "bench pe",
         "bench measures a compute_engine, manager, saddle_manager or pim_stack, and pe is a pe"),
    Case("bench without a compiler", "bench engine --m 1",
         "g++ is needed to build simulations, and it is not on PATH: install it with `apt install g++`",
         code=1, prepare=lambda folder, monkeypatch: monkeypatch.setenv("PATH", str(folder))),
    Case("sim all with --set", "sim all --set rows=4", "--set, --test and --waves need one block, not `all`"),
    Case("sim with a window and no waves", "sim pe --from 5", "--from has no effect here: it narrows --waves"),
    Case("sim with a window that ends first", "sim pe --waves --from 9 --to 8",
         "a window ends after it begins: --from 9 --to 8"),
    Case("sim of nothing", "sim", "a design was wanted, or `all`, or --list; see `speculoos sim --help`"),
    Case("sim lists what is no block", "sim --list fifoo",
         "--list shows blocks, and there is no block 'fifoo' (did you mean 'fifo'?)"),
    Case("sim with a negative seed", "sim pe --seed=-1",
         "argument --seed: a seed is an integer from 0 to 2147483647, not '-1'; see `speculoos sim --help`"),
    Case("sim with text as seed", "sim pe --seed x",
         "argument --seed: a seed is an integer from 0 to 2147483647, not 'x'; see `speculoos sim --help`"),
    Case("sim into a file", "sim pe --build-dir f",
         "--build-dir f: the folder cannot be made: File exists", {"f": ""}),
    Case("sim below a file", "sim pe --build-dir f/b",
         "--build-dir f/b: the folder cannot be made: Not a directory", {"f": ""}),
    Case("sim without a compiler", "sim pe",
         "g++ is needed to build simulations, and it is not on PATH: install it with `apt install g++`",
         code=1, prepare=lambda folder, monkeypatch: monkeypatch.setenv("PATH", str(folder))),
]


def _write(folder: Path, *names: str) -> None:
    """A folder with files; a manifest says that Speculoos wrote nothing else."""
    folder.mkdir()
    for name in names:
        (folder / name).write_text('{"generator": "speculoos", "files": {}}' if name == "manifest.json" else "x")


@functools.cache
def checkpoint() -> bytes:
    """A valid llama2.c file with a vocabulary that spells ASCII letters only."""
    shape = ModelShape(dim=4, hidden_dim=4, n_layers=1, n_heads=2, n_kv_heads=1, vocab_size=32, max_seq_len=4)
    with tempfile.NamedTemporaryFile() as f:
        save_llama2c(f.name, random_checkpoint(shape, 1))
        return Path(f.name).read_bytes()


@functools.cache
def tokenizer() -> bytes:
    """A tokenizer of 32 tokens: three special ones, the space, some letters."""
    pieces = [*byte_pieces()[:3], b" ", *(bytes([ord("a") + i]) for i in range(26)), b"ab", b"cd"]
    with tempfile.NamedTemporaryFile() as f:
        save_tokenizer(f.name, Tokenizer(pieces, np.zeros(len(pieces), np.float32)))
        return Path(f.name).read_bytes()


def patched(data: Callable[[], bytes], at: int, what: bytes) -> Callable[[], bytes]:
    """``data`` with some bytes replaced."""
    return lambda: data()[:at] + what + data()[at + len(what):]


LOOK = "check --model m.bin"
NEITHER = "this is neither a GGUF file, which starts with b'GGUF', nor a llama2.c checkpoint"
TOKENS = "check --model m.bin --tokenizer t.bin"
MODEL_FILES = [
    Case("model: none", LOOK, "m.bin: cannot be read: No such file or directory"),
    Case("model: a folder", "check --model .", ". is not a regular file"),
    Case("model: a device", "check --model /dev/zero", "/dev/zero is not a regular file"),
    Case("model: empty", LOOK,
         f"m.bin: {NEITHER}: the header of a llama2.c file has 28 bytes, this file 0", {"m.bin": b""}),
    Case("model: a design", "check --model my_engine.toml",
         f"my_engine.toml: {NEITHER}: dim must be from 1 to 65536, not 1701667182",
         {"my_engine.toml": 'name = "my_engine"\nblock = "compute_engine"\n'}),
    Case("model: GGUF cut off", LOOK, "m.bin: the version needs 4 bytes at 4, the file has 4",
         {"m.bin": b"GGUF"}),
    Case("model: GGUF of the future", LOOK, "m.bin: the GGUF version must be 2 or 3, not 9",
         {"m.bin": b"GGUF" + struct.pack("<IQQ", 9, 0, 0)}),
    Case("model: truncated", LOOK, f"m.bin: the header asks for {len(checkpoint())} bytes, this file has "
                                   f"{len(checkpoint()) - 1}", {"m.bin": lambda: checkpoint()[:-1]}),
    Case("model: too long", LOOK, f"m.bin: the header asks for {len(checkpoint())} bytes, this file has "
                                  f"{len(checkpoint()) + 4}", {"m.bin": lambda: checkpoint() + bytes(4)}),
    Case("model: not a number", LOOK, "m.bin: weights tok_emb must be finite, not nan at [0, 1]",
         {"m.bin": patched(checkpoint, 32, struct.pack("<f", float("nan")))}),
    Case("model: no layers", LOOK, f"m.bin: {NEITHER}: n_layers must be from 1 to 1024, not 0",
         {"m.bin": patched(checkpoint, 8, bytes(4))}),
    Case("model: negative width", LOOK, f"m.bin: {NEITHER}: dim must be from 1 to 65536, not -4",
         {"m.bin": patched(checkpoint, 0, struct.pack("<i", -4))}),
    Case("model: heads do not divide", LOOK, f"m.bin: {NEITHER}: dim must be a multiple of n_heads = 3, not 4",
         {"m.bin": patched(checkpoint, 12, struct.pack("<i", 3))}),
    Case("model: tokenizer without a model", "check pe --tokenizer t.bin", "--tokenizer needs --model"),
    Case("model: prompt without a model", "check pe --prompt a", "--prompt needs --model"),
    Case("model: prompt without a tokenizer", f"{LOOK} --prompt a",
         "--prompt needs --tokenizer, as m.bin brings no tokenizer", {"m.bin": checkpoint}),
    Case("model: a design as tokenizer", "check --model m.bin --tokenizer t.toml",
         "t.toml: this is neither a GGUF file, which starts with b'GGUF', nor a tokenizer.bin: the longest piece of "
         "a tokenizer.bin must have from 1 byte to as many as the file, 11, not 1701667182",
         {"m.bin": checkpoint, "t.toml": 'name = "me"'}),
    Case("model: tokenizer truncated", TOKENS, "t.bin: 32 tokens are wanted, the file ends in token 31",
         {"m.bin": checkpoint, "t.bin": lambda: tokenizer()[:-1]}),
    Case("model: tokenizer of another model", TOKENS,
         f"t.bin: 32 tokens end at byte {len(tokenizer())}, this file has {len(tokenizer()) + 9}",
         {"m.bin": checkpoint, "t.bin": lambda: tokenizer() + struct.pack("<fi", 0, 1) + b"x"}),
    Case("prompt: unknown letter", TOKENS, "the vocabulary has no piece for b'Z' and none for its byte 0x5a",
         {"m.bin": checkpoint, "t.bin": tokenizer}, last=("--prompt", "abZ")),
    Case("prompt: unknown character", TOKENS,
         "the vocabulary has no piece for b'\\xe6\\xbc\\xa2' and none for its byte 0xe6",
         {"m.bin": checkpoint, "t.bin": tokenizer}, last=("--prompt", "漢")),
    Case("prompt: not UTF-8", TOKENS, "the vocabulary has no piece for b'\\xff' and none for its byte 0xff",
         {"m.bin": checkpoint, "t.bin": tokenizer}, last=("--prompt", "\udcff")),
]

CATALOGUE = [*CONFIGURATION, *COMMAND_LINE, *MODEL_FILES]


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder: contents of files, None for the rest."""
    return {str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None for p in folder.rglob("*")}


@pytest.mark.parametrize("case", CATALOGUE, ids=lambda c: c.name)
def test_wrong_input(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                     capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name, content in case.files.items():
        made = content() if callable(content) else content
        (tmp_path / name).write_bytes(made.encode() if isinstance(made, str) else made)
    case.prepare(tmp_path, monkeypatch)
    before = tree(tmp_path)
    code = main([*case.command.split(), *case.last])
    out, err = capsys.readouterr()
    assert err == f"speculoos: error: {case.message}\n"
    assert out == ""
    assert code == case.code
    assert tree(tmp_path) == before


def test_the_good_files_are_good(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    """Without the one fault of each case, the same commands work."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.bin").write_bytes(checkpoint())
    (tmp_path / "t.bin").write_bytes(tokenizer())
    assert main([*TOKENS.split(), "--prompt", "abc"]) == 0
    assert capsys.readouterr().out.endswith("\n4 tokens: 1 3 30 6\n")


def test_a_model_brings_its_own_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                          capsys: pytest.CaptureFixture[str]) -> None:
    """A GGUF file's vocabulary counts for it, and for another model where it is named; small numbers are shown."""
    monkeypatch.chdir(tmp_path)
    shape = dataclasses.replace(GGUF_SHAPE, norm_eps=1e-5)
    write(Path("m.gguf"), random_checkpoint(shape, 1), edit=add_vocabulary)
    save_llama2c("m.bin", random_checkpoint(dataclasses.replace(shape, rope_theta=10000.0), 1))
    for command in ("--model m.gguf", "--model m.bin --tokenizer m.gguf", "--model m.gguf --tokenizer m.gguf"):
        assert main(["check", *command.split(), "--prompt", "ab!"]) == 0
        out = capsys.readouterr().out
        assert out.endswith("\n4 tokens: 1 286 260 36\n")
        assert re.search(r"^norm_eps +1e-05$", out, re.MULTILINE)
    assert main(["check", "--model", "m.gguf", "--json", "-"]) == 0
    model = json.loads(capsys.readouterr().out)["model"]
    assert (model["norm_eps"], model["vocab_size"]) == (float(np.float32(1e-5)), 288)


def test_smollm2_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    """A public model: its weights are read, its byte-level tokenizer is not."""
    assert main(["check", "--model", str(smollm2_file())]) == 0
    assert re.search(r"^parameters +134515008$", capsys.readouterr().out, re.MULTILINE)
    assert main(["check", "--model", str(smollm2_file()), "--prompt", "hi"]) == 2
    assert capsys.readouterr().err == (
        f"speculoos: error: {smollm2_file()}: the tokenizer is byte-level BPE (tokenizer.ggml.model is gpt2), which "
        f"is not read yet, only llama's pieces with scores are\n")


def test_the_catalogue_is_long_and_its_names_differ() -> None:
    assert len({c.name for c in CATALOGUE}) == len(CATALOGUE) >= 25
