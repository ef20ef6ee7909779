"""Configurations: presets, the JSON schema, round trips, overrides."""

import dataclasses
import json
import tomllib
from typing import Any

import fastjsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gen.config.config import Config, load, override, parse, presets, resolve
from gen.config.schema import ModelParams, derived, json_schema
from gen.config.template import render
from gen.emit.names import check_name
from gen.errors import UserError
from rtl.registry import BLOCKS
from sim_models.params.base import ParamError, Params
from sim_models.transformer.checkpoint import ModelShape

NAMES = st.from_regex(r"[a-z][a-z0-9_]*", fullmatch=True).filter(
    lambda name: check_name(name) is None and not name.startswith(tuple(BLOCKS)))


def values(field: dataclasses.Field[Any], beyond: int = 0) -> st.SearchStrategy[Any]:
    """Values of one parameter, and ``beyond`` its bounds."""
    if isinstance(field.default, bool):
        return st.booleans()
    if isinstance(field.default, str):
        return st.sampled_from(field.metadata["choices"]) if field.metadata["choices"] else st.text()
    return st.integers(field.metadata["low"] - beyond, field.metadata["high"] + beyond)


@st.composite
def params(draw: Any, kind: type[Params]) -> Params:
    """Valid parameters; a set that contradicts itself falls back to fewer changes."""
    changes = draw(st.fixed_dictionaries({}, optional={f.name: values(f) for f in dataclasses.fields(kind)}))
    while True:
        try:
            return kind(**changes)
        except ParamError:
            changes.popitem()


@st.composite
def configs(draw: Any) -> Config:
    """Any valid design."""
    block = draw(st.sampled_from(list(BLOCKS.values())))
    drawn = draw(params(block.params))
    return Config(name=draw(NAMES), block=block, params=drawn, base=drawn,
                  description=draw(st.text(st.characters(codec="utf-8", exclude_characters="\n"))),
                  model=draw(st.none() | params(ModelParams)))


def test_preset_names() -> None:
    found = presets()
    assert {"engine", "engine_systolic", "engine_vector", "engine_small", "stories260k"} <= set(found)
    assert not set(found) & set(BLOCKS)
    for name, path in found.items():
        config = load(path)
        assert config.name == name
        assert config.description


def test_presets_differ_in_what_they_build() -> None:
    built = [(c.block.name, c.params, c.model) for c in map(load, presets().values())]
    assert all(a != b for i, a in enumerate(built) for b in built[:i])


def test_baselines_are_the_engine_with_one_mode_less() -> None:
    engine, systolic, vector = (resolve(n).params for n in ("engine", "engine_systolic", "engine_vector"))
    assert systolic == engine.replace(modes="systolic")
    assert vector == engine.replace(modes="vector")


@given(configs())
@settings(max_examples=60, deadline=None)
def test_rendered_configuration_reads_back(config: Config) -> None:
    assert parse(render(config), "f.toml") == config


def test_rendered_configuration_explains_every_parameter() -> None:
    text = render(resolve("stories260k"))
    for field in (*dataclasses.fields(resolve("stories260k").params), *dataclasses.fields(ModelParams)):
        assert f"# {field.metadata['doc']} (" in text


SCHEMA = fastjsonschema.compile(json_schema())


def accepts(document: dict[str, Any]) -> bool:
    """Whether the JSON schema takes a document."""
    try:
        SCHEMA(document)
    except fastjsonschema.JsonSchemaValueException:
        return False
    return True


@given(configs())
@settings(max_examples=60, deadline=None)
def test_schema_accepts_what_the_loader_accepts(config: Config) -> None:
    assert accepts(tomllib.loads(render(config)))


@given(configs(), st.data())
@settings(max_examples=100, deadline=None)
def test_loader_refuses_what_the_schema_refuses(config: Config, data: st.DataObject) -> None:
    document = tomllib.loads(render(config))
    tables = [document, document["params"], document.get("model")]
    table = data.draw(st.sampled_from([t for t in tables if t]))
    key = data.draw(st.sampled_from(list(table)))
    kind = data.draw(st.sampled_from(["remove", "rename", "value"]))
    value = table.pop(key)
    if kind == "rename":
        table[key + "x"] = value
    elif kind == "value":
        table[key] = data.draw(st.sampled_from([-1, 0, 10**6, True, "", "text", [], {}, 0.5]))
    if not accepts(document):
        with pytest.raises(UserError, match=r"^f.toml:\d+:\d+: "):
            parse(to_toml(document), "f.toml")


def to_toml(document: dict[str, Any]) -> str:
    """A document as TOML, tables inline (JSON's scalars and arrays are TOML's)."""
    def text(value: Any) -> str:
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k} = {text(v)}" for k, v in value.items()) + "}"
        return json.dumps(value).replace("\x7f", "\\u007f")
    return "".join(f"{key} = {text(value)}\n" for key, value in document.items())


@given(params(ModelParams))
@settings(max_examples=50, deadline=None)
def test_every_model_table_is_a_model_shape(model: ModelParams) -> None:
    given = dataclasses.asdict(model)
    assert given.items() <= dataclasses.asdict(ModelShape(**given)).items()


def test_set_applies_all_changes_before_checking() -> None:
    config = resolve("compute_engine", ["activation_depth=16384", "weight_depth = 16384", "acc_width=0x28",
                                        "psum_width=40"])
    assert config.params == BLOCKS["compute_engine"].params().replace(
        activation_depth=16384, weight_depth=16384, acc_width=40, psum_width=40)
    assert override(config, []) == config


def test_resolve_takes_blocks_presets_and_files(tmp_path: Any) -> None:
    assert resolve("pe").params == BLOCKS["pe"].params()
    assert resolve("engine_small").params.rows == 4
    file = tmp_path / "mine.toml"
    file.write_text('name = "mine"\r\nblock = "pe_array"\r\nparams.rows = 3 # odd\r\n')
    assert resolve(str(file)).params == BLOCKS["pe_array"].params().replace(rows=3)


def test_derived_figures() -> None:
    params = BLOCKS["compute_engine"].params()
    figures = derived(params)
    assert figures["k_max"][0] == params.k_max
    assert figures["k_max"][1].startswith("Largest K of one command")
    assert figures["systolic"][0] is True
    assert "pe" not in figures


def test_help_says_where_only_powers_of_two_are_taken() -> None:
    """Bounds alone would say that 5 rows are fine."""
    found = 0
    for block in BLOCKS.values():
        p = block.params()
        for field in dataclasses.fields(p):
            low, high = field.metadata["low"], field.metadata["high"]
            if low is None or high is None or type(field.default) is not int:
                continue
            for value in (3, 5, 6, 12, 100):
                if low <= value <= high:
                    try:
                        p.replace(**{field.name: value})
                    except ParamError as e:
                        if "power of two" in str(e) and e.name == field.name:
                            found += 1
                            assert "power of two" in field.metadata["doc"], (block.name, field.name)
    assert found > 20
