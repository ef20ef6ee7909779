"""What a configuration file may hold: one table that the loader, the JSON schema and the docs share."""

import dataclasses
import inspect
import re
from typing import Any

from rtl.registry import BLOCKS
from sim_models.params.base import ParamError, Params, param

__all__ = ["CLOCK_MHZ", "NAME_PATTERN", "TOP_LEVEL", "ModelParams", "derived", "is_name", "json_schema", "span"]

#: a design's name, also the stem of its file
NAME_PATTERN = r"[a-z][a-z0-9_]*"

#: clock frequency that tools are asked for when nothing is said, in MHz
CLOCK_MHZ = 100.0

#: keys of a configuration file: what they are, whether they must be there
TOP_LEVEL: dict[str, tuple[str, bool]] = {
    "name": ("name of the design: lower-case letters, digits and underscores", True),
    "description": ("one line for `speculoos list`", False),
    "block": ("the block to build, one of `speculoos list`", True),
    "params": ("parameters of the block; what is not set keeps its default", False),
    "model": ("shape of the model that benches run; without it, the models that come with the project", False),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelParams(Params):
    """Shape of a Llama-style model, with the names of ``sim_models.transformer``'s ``ModelShape``."""

    dim: int = param(64, "width of the residual stream", low=2, high=16384)
    hidden_dim: int = param(172, "width of the feed-forward layer", low=1, high=65536)
    n_layers: int = param(5, "layers", low=1, high=256)
    n_heads: int = param(8, "query heads", low=1, high=256)
    n_kv_heads: int = param(4, "key and value heads", low=1, high=256)
    vocab_size: int = param(512, "tokens in the vocabulary", low=2, high=262144)
    max_seq_len: int = param(512, "longest sequence in tokens", low=1, high=131072)

    def validate(self) -> None:
        if self.dim % (2 * self.n_heads):
            raise ParamError(f"dim must be a multiple of twice n_heads = {self.n_heads} (rotary positions "
                             f"turn pairs), not {self.dim}", "dim")
        if self.n_heads % self.n_kv_heads:
            raise ParamError(f"n_kv_heads must divide n_heads = {self.n_heads}, not {self.n_kv_heads}",
                             "n_kv_heads")


def span(field: dataclasses.Field[Any]) -> str:
    """The values that a parameter takes, in words."""
    low, high, choices = (field.metadata[key] for key in ("low", "high", "choices"))
    if isinstance(field.default, bool):
        return "true or false"
    if choices is not None:
        return "one of " + ", ".join(map(str, choices))
    if isinstance(field.default, str):
        return "a string"
    if low is not None and high is not None:
        return f"{low} to {high}"
    return f"at least {low}" if low is not None else f"at most {high}" if high is not None else "an integer"


def derived(params: Params) -> dict[str, tuple[Any, str]]:
    """Figures that follow from the parameters: name to value and meaning.

    They are the properties of the parameter class whose value is a number or a truth value.
    """
    found = {}
    for name, member in inspect.getmembers(type(params), lambda m: isinstance(m, property)):
        value = getattr(params, name)
        if isinstance(value, int | float):
            found[name] = value, (inspect.getdoc(member) or "").split("\n")[0].rstrip(".")
    return found


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 7) of a configuration file, for editors.

    It says what can be said key by key; what concerns several parameters together is checked by
    ``speculoos check`` alone.
    """
    properties: dict[str, Any] = {key: {"description": doc} for key, (doc, _) in TOP_LEVEL.items()}
    properties["name"] |= {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
    properties["description"] |= {"type": "string"}
    properties["block"] |= {"enum": list(BLOCKS)}
    properties["params"] |= {"type": "object"}
    properties["model"] |= _object(ModelParams)
    properties["model"]["required"] = [f.name for f in dataclasses.fields(ModelParams)]
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Speculoos design",
        "type": "object",
        "properties": properties,
        "required": [key for key, (_, required) in TOP_LEVEL.items() if required],
        "additionalProperties": False,
        "allOf": [{"if": {"properties": {"block": {"const": block.name}}, "required": ["block"]},
                   "then": {"properties": {"params": _object(block.params)}}} for block in BLOCKS.values()],
    }


def _object(params: type[Params]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False,
            "properties": {field.name: _value(field) for field in dataclasses.fields(params)}}


def _value(field: dataclasses.Field[Any]) -> dict[str, Any]:
    kinds = {bool: "boolean", int: "integer", str: "string"}
    schema = {"description": field.metadata["doc"], "type": kinds[type(field.default)],
              "default": field.default, "minimum": field.metadata["low"],
              "maximum": field.metadata["high"], "enum": field.metadata["choices"] and
              list(field.metadata["choices"])}
    return {key: value for key, value in schema.items() if value is not None}


def is_name(text: str) -> bool:
    """Whether ``text`` can name a design."""
    return re.fullmatch(NAME_PATTERN, text) is not None
