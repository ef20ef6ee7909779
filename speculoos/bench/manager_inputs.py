"""What ``speculoos bench manager`` runs on: a pair with prompts or recorded traces, and machines with their costs."""

import argparse
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gen.errors import UserError

if TYPE_CHECKING:
    from sim_models.specdec.costs import MappedCosts
    from sim_models.specdec.traces import Trace

__all__ = ["add_arguments", "load_machines", "recorded"]


def add_arguments(parser: "argparse._ArgumentGroup") -> None:
    """Models, prompts, traces and machines."""
    parser.add_argument("--target", type=Path, metavar="FILE",
                        help="llama2.c or GGUF target (default: the shipped one)")
    parser.add_argument("--draft", type=Path, metavar="FILE", help="its draft, which must be named with a target")
    parser.add_argument("--tokenizer", type=Path, metavar="FILE", help="tokenizer.bin, where the target brings none")
    parser.add_argument("--prompts", type=Path, metavar="FILE", help="a prompt a line (default: the shipped ones)")
    parser.add_argument("--traces", type=Path, metavar="FILE.json",
                        help="recorded texts instead of models, as --record writes them")
    parser.add_argument("--record", type=Path, metavar="FILE.json", help="also write the recorded texts")
    parser.add_argument("--machine", type=Path, metavar="FILE.toml",
                        help="machines: a table each, with the costs of steps and passes in cycles (default: the "
                             "paper's, and one whose tiles are bound by arithmetic)")


def load_machines(path: Path) -> "dict[str, MappedCosts]":
    """Machines from a TOML file: a table for each, with the members of ``MappedCosts`` as keys.

    Raises
    ------
    UserError
        The file cannot be read, holds no table, or a key is missing, unknown, or no positive integer.
    """
    from gen.config.config import guess, parse_toml, read_text
    from sim_models.specdec.costs import MappedCosts
    document = parse_toml(read_text(path), str(path))
    fields = dataclasses.fields(MappedCosts)
    names = [f.name for f in fields]
    needed = [f.name for f in fields if f.default is dataclasses.MISSING]
    machines = {}
    for name, table in document.items():
        if not isinstance(table, dict):
            raise UserError(f"{path}: a table for each machine was wanted, as [{name}], not {name} = {table!r}")
        for key, value in table.items():
            if key not in names:
                raise UserError(f"{path}: [{name}] has no key {key!r}{guess(key, names)}, only {', '.join(names)}")
            least = 0 if key == "communication" else 1
            if type(value) is not int or value < least:
                raise UserError(f"{path}: [{name}] {key} must be an integer of at least {least}, not {value!r}")
        missing = [key for key in needed if key not in table]
        if missing:
            raise UserError(f"{path}: [{name}] lacks {', '.join(missing)}")
        machines[name] = MappedCosts(**table)
    if not machines:
        raise UserError(f"{path}: a table for each machine was wanted, the file has none")
    return machines


def recorded(args: argparse.Namespace, tokens: int, prompts: int) -> "Trace":
    """What draft and target say about up to ``prompts`` prompts, ``tokens`` tokens each.

    Raises
    ------
    UserError
        A file is missing or wrong, the parts do not fit each other, or the traces are too short.
    """
    from sim_models.specdec.traces import TraceError, load_trace, record, save_trace
    if args.traces:
        for option in ("target", "draft", "tokenizer", "prompts", "record"):
            if getattr(args, option):
                raise UserError(f"--traces and --{option} exclude each other: traces hold what the models said")
        try:
            trace = load_trace(args.traces)
        except TraceError as e:
            raise UserError(str(e)) from e
        if not trace.requests:
            raise UserError(f"{args.traces}: a trace of at least one request was wanted, it has none")
        short = min(trace.limits)
        if short < tokens:
            raise UserError(f"{args.traces}: {tokens} tokens of each request were wanted (--tokens), one has {short}")
        return dataclasses.replace(trace, requests=tuple(_cut(r, tokens) for r in trace.requests))
    draft, target, texts = _models(args)
    try:
        trace = record(draft, target, texts[:prompts], tokens)
        if args.record:
            save_trace(trace, args.record)
    except ValueError as e:
        raise UserError(str(e)) from e
    return trace


def _cut(request: Any, tokens: int) -> Any:
    """The first tokens of a recorded request."""
    return dataclasses.replace(request, target=request.target[:tokens], draft=request.draft[:tokens],
                               branches={i: b for i, b in request.branches.items() if i < tokens})


def _models(args: argparse.Namespace) -> "tuple[Any, Any, Sequence[list[int]]]":
    from sim_models.specdec.models import LlamaModel
    from sim_models.specdec.traces import shipped_models
    from sim_models.transformer.checkpoint import CheckpointError
    from sim_models.transformer.int8_model import Int8Model
    from sim_models.transformer.pair import load_pair
    from speculoos.demo.models import load_models
    if not (args.target or args.draft or args.tokenizer or args.prompts):
        return shipped_models()
    if args.target and not args.draft:
        raise UserError("a target needs its draft: name both with --target and --draft")
    models = load_models(args.target, args.draft, args.tokenizer, None, 0)
    prompts = _prompts(args.prompts) if args.prompts else load_pair().prompts
    try:
        assert models.draft is not None
        draft, target = LlamaModel(Int8Model(models.draft)), LlamaModel(Int8Model(models.target))
        return draft, target, [models.tokenizer.encode(text) for text in prompts]
    except CheckpointError as e:
        raise UserError(str(e)) from e


def _prompts(path: Path) -> list[str]:
    from gen.config.config import read_text
    found = [line for line in read_text(path).splitlines() if line.strip()]
    if not found:
        raise UserError(f"{path}: a prompt a line was wanted, the file has none")
    return found
