"""``speculoos check``: everything that can be said about a design or a model file without building it."""

import argparse
import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

from gen.errors import UserError
from speculoos.arguments import add_design
from speculoos.report import Report

if TYPE_CHECKING:
    from gen.emit.emit import Design

__all__ = ["EXAMPLES", "add_arguments", "run"]

EXAMPLES = """\
examples:
  speculoos check engine_small
  speculoos check my_engine.toml --set rows=16
  speculoos check --model model.bin --tokenizer tokenizer.bin --prompt "Once upon a time"
  speculoos check --model model.gguf --prompt "Once upon a time"
  speculoos check --schema > speculoos.schema.json"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A design, a model file, or the schema."""
    add_design(parser, optional=True)
    parser.add_argument("--model", metavar="FILE", type=Path, help="a llama2.c or GGUF checkpoint to look at")
    parser.add_argument("--tokenizer", metavar="FILE", type=Path,
                        help="its tokenizer.bin, or a GGUF file with a tokenizer (default: the model's own)")
    parser.add_argument("--prompt", metavar="TEXT", help="a text to split into tokens")
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of configuration files")


def run(args: argparse.Namespace, report: Report) -> int:
    """Do one of the three."""
    chosen = [name for name, given in (("DESIGN", args.design), ("--model", args.model),
                                       ("--schema", args.schema)) if given]
    if len(chosen) != 1:
        came = " and ".join(chosen) or "none"
        raise UserError(f"one of DESIGN, --model and --schema is needed, not {came}")
    for option, needs, given, base in (("--tokenizer", "--model", args.tokenizer, args.model),
                                       ("--prompt", "--model", args.prompt is not None, args.model),
                                       ("--set", "DESIGN", args.settings, args.design)):
        if given and not base:
            raise UserError(f"{option} needs {needs}")
    if args.schema:
        return _schema(report)
    return _model(args, report) if args.model else _design(args, report)


def _schema(report: Report) -> int:
    from gen.config.schema import json_schema
    report.data["schema"] = json_schema()
    report.line(json.dumps(json_schema(), indent=2))
    return 0


def _model(args: argparse.Namespace, report: Report) -> int:
    """The shape of a checkpoint, and the tokens of a prompt."""
    from sim_models.transformer.checkpoint import CheckpointError
    from sim_models.transformer.formats.model_file import open_model, open_tokenizer
    tokens = None
    try:
        file = open_model(args.model)
        if args.prompt is not None and not args.tokenizer and not file.has_tokenizer:
            raise UserError(f"--prompt needs --tokenizer, as {args.model} brings no tokenizer")
        if args.prompt is not None and not args.tokenizer:
            tokens = file.tokenizer().encode(args.prompt)       # before the weights, which take longer
        shape = file.verified()
        if args.tokenizer:
            tokenizer = open_tokenizer(args.tokenizer, shape.vocab_size)
            tokens = None if args.prompt is None else tokenizer.encode(args.prompt)
    except CheckpointError as e:
        raise UserError(str(e)) from e
    fields = dataclasses.asdict(shape) | {"parameters": shape.parameters}
    # an epsilon is too small for three decimals
    report.table(["model", str(args.model)], [
        [name, f"{value:g}" if isinstance(value, float) else value] for name, value in fields.items()])
    report.data["model"] = fields
    if args.tokenizer:
        report.line(f"\n{args.tokenizer} has as many tokens as the model")
    if tokens is not None:
        report.line(f"\n{len(tokens)} tokens: {' '.join(map(str, tokens))}")
        report.data["tokens"] = tokens
    return 0


def _design(args: argparse.Namespace, report: Report) -> int:
    """Parameters, derived figures, ports, and what the linters say."""
    from gen.config.config import resolve
    from gen.config.schema import derived
    from gen.flows.doctor import require
    config = resolve(args.design, args.settings)
    require("amaranth", "pyosys")
    from gen.emit.emit import emit
    from gen.emit.rename import renamed
    design = renamed(emit(config.block.unit(config.params)), top=config.top)
    params, figures = dataclasses.asdict(config.params), derived(config.params)
    ports = design.ports[design.top]
    report.line(f"{config.name}: {config.description}\n")
    defaults = {f.name: f.default for f in dataclasses.fields(config.params)}
    report.table(["parameter", "value", "default"], [[k, v, defaults[k]] for k, v in params.items()])
    report.line()
    if figures:
        report.table(["follows", "value", "what it is"], [[k, v, doc] for k, (v, doc) in figures.items()])
        report.line()
    report.table(["port", "direction", "bits"], [
        [p.name, p.direction, f"{p.width}{' signed' if p.signed else ''}"] for p in ports])
    report.line()
    _verdicts(design, report)
    count = len(design.modules)
    report.line(f"{design.top}: {count} module{'s' * (count > 1)}, {len(design.verilog)} bytes of Verilog")
    report.data.update(
        design=config.name, block=config.block.name, module=design.top, params=params,
        derived={k: v for k, (v, _) in figures.items()}, ports=[dataclasses.asdict(p) for p in ports],
        modules=list(design.modules))
    failed = [tool for tool, verdict in report.data["checks"].items() if verdict == "failed"]
    if failed:
        report.line(f"not accepted by {' and '.join(failed)}")
    return 1 if failed else 0


def _verdicts(design: "Design", report: Report) -> None:
    """What four tools say about the Verilog; one that is not installed has no say."""
    from gen.errors import ToolError
    from gen.flows.check import CHECKS
    from gen.flows.doctor import examine_named
    package = {"icarus": "iverilog", "slang": "pyslang", "yosys": "pyosys"}
    verdicts, reasons = {}, {}
    with report.progress("checking", len(CHECKS)) as progress:
        for name, check in CHECKS.items():
            found = examine_named(package.get(name, name))
            if not found.ok:
                verdicts[name], reasons[name] = "missing", found.check.hint
            else:
                try:
                    check(design)
                    verdicts[name], reasons[name] = "ok", found.found
                except ToolError as e:
                    verdicts[name], reasons[name] = "failed", str(e)
            progress.step(name)
    report.table(["Verilog checked by", "verdict", "version or reason"],
                 [[name, verdict, reasons[name]] for name, verdict in verdicts.items()])
    report.line()
    report.data["checks"] = verdicts
