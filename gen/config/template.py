"""The text of a configuration file, with every parameter explained."""

import dataclasses
import json
from typing import Any

from gen.config.config import Config
from gen.config.schema import span
from sim_models.params.base import Params

__all__ = ["render"]


def render(config: Config) -> str:
    """TOML text that :func:`gen.config.parse` reads back as ``config``."""
    parts = [
        f"# Check it with `speculoos check {config.name}.toml`,\n"
        f"# generate it with `speculoos verilog {config.name}.toml -o DIR`.",
        f"name = {_literal(config.name)}\ndescription = {_literal(config.description)}\n"
        f"block = {_literal(config.block.name)}",
        _table("params", config.params),
    ]
    if config.model is not None:
        parts.append("# The shape of the model that benches run.\n" + _table("model", config.model))
    return "\n\n".join(parts) + "\n"


def _table(name: str, params: Params) -> str:
    lines = [f"[{name}]"]
    for field in dataclasses.fields(params):
        lines.append(f"# {field.metadata['doc']} ({span(field)}, default {_literal(field.default)})")
        lines.append(f"{field.name} = {_literal(getattr(params, field.name))}")
    return "\n".join(lines)


def _literal(value: Any) -> str:
    # JSON's integers, truth values and strings are TOML's too, except for the one control character
    # that JSON leaves as it is.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
