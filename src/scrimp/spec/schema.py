"""The JSON Schema of a spec, for editors: completion, descriptions and checks while typing.

Derived from the dataclasses, the field help and the bounds, with every friendly form that `read` takes. The shipped
`job.schema.json` is made by `scrimp init --schema > src/scrimp/spec/job.schema.json`; a test says when it is old.
"""

import json
import math
from decimal import Decimal
from typing import Any, cast

from scrimp import methods
from scrimp.core.job import JobSpec, MethodChoice
from scrimp.spec.check import BOUNDS, FORMS
from scrimp.spec.fields import FIELD_EXAMPLES, FIELD_HELP
from scrimp.spec.kinds import (
    REQUIRED,
    SHORT_FOR,
    Key,
    branches,
    choices_in,
    element_in,
    is_number,
    is_optional,
    keys_of,
    record_in,
)
from scrimp.spec.options import method_keys
from scrimp.spec.quantities import Quantity, quantity_of, short_key

Schema = dict[str, Any]

_TYPES = {str: "string", int: "integer", float: "number", Decimal: "number", bool: "boolean"}


def job_schema() -> Schema:
    """The schema of a job's YAML file as a JSON-ready mapping (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "scrimp job",
        "description": "One fine-tuning job: what scrimp plan and scrimp run read.",
        **_mapping(JobSpec, path=""),
    }


def schema_text() -> str:
    """The schema as the shipped file holds it, and as `scrimp init --schema` prints it."""
    return json.dumps(job_schema(), indent=2, ensure_ascii=False) + "\n"


def _mapping(record: Any, *, path: str) -> Schema:
    """A dataclass as an object; a quantity may stand under its exact or its short key, and one of the two alone."""
    properties: Schema = {}
    required: list[str] = []
    once: list[Schema] = []
    for key in keys_of(record).values():
        dotted = f"{path}.{key.name}" if path else key.name
        quantity = quantity_of(key.name) if is_number(key.kind) else None
        described = _described(key, dotted)
        properties[key.name] = {**described, **_value(key.kind, dotted=dotted, quantity=quantity)}
        short = short_key(key.name)
        if quantity is not None and short != key.name:
            bare = None if quantity.needs_unit else key.kind
            properties[short] = {**described, **_value(bare or str, dotted=dotted, quantity=quantity)}
            once.append({"not": {"required": [key.name, short]}})
        if key.default is REQUIRED:
            required.append(key.name)
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": required} if required else {}) | ({"allOf": once} if once else {})


def _described(key: Key, dotted: str) -> Schema:
    found: Schema = {"description": FIELD_HELP.get(dotted, key.help)}
    if not found["description"]:
        found = {}
    if key.default is not REQUIRED and record_in(key.kind) is None:
        found["default"] = _json(key.default)
    if dotted in FIELD_EXAMPLES:
        found["examples"] = [_json(FIELD_EXAMPLES[dotted])]
    return found


def _value(kind: Any, *, dotted: str, quantity: Quantity | None = None) -> Schema:
    """Everything that may stand at a key."""
    record = record_in(kind)
    if record is MethodChoice:
        return _method()
    if record is not None:
        forms = [_mapping(record, path=dotted)]
        if SHORT_FOR.get(record):
            forms.append(_value(str, dotted=f"{dotted}.{SHORT_FOR[record]}"))
        elif not any(key.default is REQUIRED for key in keys_of(record).values()):
            forms.append({"type": "null"})
        return _any_of(forms)
    if element_in(kind) is not None:
        inner = _value(element_in(kind), dotted=dotted)
        return _any_of([{"type": "array", "items": inner}, inner, {"type": "null"}])
    forms = [_plain(part, dotted) for part in branches(kind) if not (quantity and part is str)]
    if quantity is not None:
        forms.append({"type": "string", "pattern": quantity.pattern})
    return _any_of([*forms, {"type": "null"}] if is_optional(kind) or (quantity and kind is str) else forms)


def _plain(kind: Any, dotted: str) -> Schema:
    if choices_in(kind):
        return {"enum": list(choices_in(kind))}
    schema: Schema = {"type": _TYPES[kind]}
    if kind is str and dotted in FORMS:
        schema["pattern"] = f"^{FORMS[dotted][0].pattern}$" if dotted in {"name", "project"} else r"\S"
    bound = BOUNDS.get(dotted) if kind is not str else None
    if bound is not None and math.isfinite(bound.high):
        schema["exclusiveMinimum" if bound.above else "minimum"] = bound.low
        schema["exclusiveMaximum" if bound.below else "maximum"] = bound.high
    return schema


def _method() -> Schema:
    """A method's name, or its name with its options, which may stand beside it or under `options`."""
    names = [*methods.names(), "auto"]
    forms: list[Schema] = [{"type": "null"}, {"enum": names, "description": FIELD_HELP["method.name"]}]
    for name in names:
        options = {key.name: _option(key) for key in method_keys(name).values()}
        summary = "the planner compares all methods" if name == "auto" else methods.get(name).summary
        nested = {"type": "object", "properties": options, "additionalProperties": False}
        named = {"const": name, "description": summary}
        properties: Schema = {"name": named, "options": nested | {"description": FIELD_HELP["method.options"]}}
        form: Schema = {"type": "object", "properties": properties | options, "additionalProperties": False}
        # Without a name the method is auto.
        forms.append(form if name == "auto" else form | {"required": ["name"]})
    return {"anyOf": forms}


def _option(key: Key) -> Schema:
    described: Schema = {"description": key.help} if key.help else {}
    return {**described, "default": _json(key.default), **_value(key.kind, dotted="")}


def _json(value: object) -> object:
    if isinstance(value, Decimal):
        return float(value)
    return list(cast(tuple[object, ...], value)) if isinstance(value, tuple) else value


def _any_of(forms: list[Schema]) -> Schema:
    return forms[0] if len(forms) == 1 else {"anyOf": forms}
