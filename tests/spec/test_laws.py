"""parse(print(x)) == x for every spec and every plan, and no text makes the reader fall over."""

import math
import typing
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from scrimp import methods
from scrimp.core.data import DataProfile
from scrimp.core.errors import SpecError
from scrimp.core.estimate import Estimate
from scrimp.core.job import JobSpec, MethodChoice
from scrimp.core.plan import Plan
from scrimp.core.recipe import Recipe
from scrimp.spec.check import BOUNDS, FORMS, check_spec
from scrimp.spec.document import Items, Leaf, Table, parse_document
from scrimp.spec.kinds import branches, choices_in, element_in, is_optional, keys_of, record_in
from scrimp.spec.options import spec_options
from scrimp.spec.read import load_yaml, parse_spec
from scrimp.spec.schema import job_schema
from scrimp.spec.write import commented_spec, dump_yaml

# Values for options that methods may have; an option that is not here keeps its default.
OPTIONS = {
    "rank": st.integers(1, 1024),
    "alpha": st.integers(1, 4096),
    "dropout": st.floats(0, 1, exclude_max=True),
    "targets": st.lists(st.sampled_from(["q_proj", "v_proj", "down_proj"]), min_size=1, unique=True).map(tuple),
}
# Names that are no local path in any folder; paths have tests of their own.
HUB_IDS = st.from_regex(r"[a-z0-9]{1,8}/[a-z0-9]{1,8}", fullmatch=True)
MEANT_BY_RECIPES = {key.rsplit(".", 1)[-1]: key for key in BOUNDS if key.startswith(("training.", "data."))}
SCHEMA = Draft202012Validator(job_schema())
FINITE = {"allow_nan": False, "allow_infinity": False}


def number(kind, key):
    """Numbers of a type inside the bounds of a key; any finite ones where there are no bounds."""
    bound = BOUNDS.get(key)
    low, high = (bound.low, bound.high) if bound else (-(10**9), 10**9)
    above, below = (bound.above, bound.below) if bound else (False, False)
    if kind is int:
        return st.integers(math.ceil(low) + above, math.floor(high) - below)
    if kind is float:
        return st.floats(low, high, exclude_min=above, exclude_max=below, **FINITE)
    return st.decimals(low, high, **FINITE).filter(lambda value: not bound or bound.holds(value))


def text(key):
    form = FORMS.get(key)
    if key in {"name", "project"}:
        return st.from_regex(form[0], fullmatch=True)
    return st.text(max_size=30).filter(lambda value: form is None or form[0].fullmatch(value))


def method_choices():
    def options(name):
        known = keys_of(methods.get(name).options_type)
        values = {key: OPTIONS.get(key, st.just(item.default)) for key, item in known.items()}
        return st.builds(MethodChoice, name=st.just(name), options=st.fixed_dictionaries({}, optional=values))

    return st.one_of(st.just(MethodChoice()), st.sampled_from(methods.names()).flatmap(options))


def ordered(kind):
    """Estimates whose interval holds their value."""
    (of,) = typing.get_args(kind)
    three = st.lists(number(of, ""), min_size=3, max_size=3).map(sorted)
    return st.builds(lambda at, basis: Estimate(low=at[0], value=at[1], high=at[2], basis=basis), three, st.text())


def values_of(kind, key=""):
    """Anything that the dataclasses allow, derived from them: a field that is added is covered."""
    if len(branches(kind)) > 1 or is_optional(kind):
        parts = [values_of(part, key) for part in branches(kind)]
        return st.one_of(*([st.none()] if is_optional(kind) else []), *parts)
    record = record_in(kind)
    if record is MethodChoice:
        return method_choices()
    if typing.get_origin(record) is Estimate:
        return ordered(record)
    if record is JobSpec and key:
        return st.builds(lambda spec, model, path: replace(spec, model=model, data=replace(
            spec.data, path=path, eval_path=None)), SPECS, HUB_IDS, HUB_IDS)  # fmt: skip
    if record is not None:
        prefix = f"{key}." if key and record is not Recipe else ""
        meant = MEANT_BY_RECIPES if record is Recipe else {}
        fields = {name: values_of(item.kind, meant.get(name, prefix + name)) for name, item in keys_of(record).items()}
        if record is DataProfile:
            fields["path"] = HUB_IDS
        return st.builds(record, **fields)
    if element_in(kind) is not None:
        return st.lists(values_of(element_in(kind), key), max_size=3).map(tuple)
    if choices_in(kind):
        return st.sampled_from(choices_in(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    if typing.get_origin(kind) is tuple:
        return st.tuples(*(values_of(part) for part in typing.get_args(kind)))
    moments = st.datetimes(timezones=st.just(UTC), min_value=datetime(2000, 1, 1), max_value=datetime(2100, 1, 1))
    plain = {bool: st.booleans(), datetime: moments, date: st.dates()}
    if kind in plain:
        return plain[kind]
    return text(key) if kind is str else number(kind, key)


SPECS = values_of(JobSpec).filter(lambda spec: not check_spec(spec))
few = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


@few
@given(SPECS)
def test_a_commented_spec_reads_as_the_spec_it_was_written_from(spec):
    assert parse_spec(commented_spec(spec, schema="job.schema.json"), where="job.yaml") == spec


@few
@given(SPECS)
def test_a_dumped_spec_reads_as_itself(spec):
    assert parse_spec(dump_yaml(spec), where="spec.yaml") == spec


# A plan has hundreds of fields: making one smaller takes minutes and says little more than the difference does.
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(plan=st.deferred(lambda: values_of(Plan)))
def test_a_plan_reads_as_itself(plan, tmp_path_factory):
    path = tmp_path_factory.mktemp("plan") / "plan.yaml"
    path.write_text(dump_yaml(plan, folder=path.parent), encoding="utf-8")
    assert load_yaml(Plan, path) == plan


@few
@given(SPECS)
def test_the_schema_takes_every_spec_that_we_write(spec):
    document = parse_document(commented_spec(spec), source="job.yaml")
    SCHEMA.validate(plain(document.root))


def plain(node):
    match node:
        case Leaf():
            return node.value
        case Items():
            return [plain(item) for item in node.items]
        case Table():
            return {key: plain(child) for key, child in node.entries.items()}


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet=st.sampled_from(list("ab:- \n\t\"'[]{}#&*!|>%@,?0.~=")), max_size=40))
def test_no_text_makes_the_reader_fall_over(junk):
    refused_or_read(junk)


ANYTHING = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=5), inner, max_size=2)),
    max_leaves=4,
)


@settings(max_examples=200, deadline=None)
@given(key=st.sampled_from(list(spec_options())), value=ANYTHING)
@example(key="local.price_usd_per_hour", value=[""])
@example(key="market.max_price_usd_per_hour", value={"": ""})
def test_no_value_of_any_key_makes_the_reader_fall_over(key, value):
    from scrimp.spec.yaml_text import one_line

    section, _, name = key.rpartition(".")
    line = f"{name}: {one_line(value)}"
    given_keys = {"model", "data"} - {section, name}
    head = "".join(f"{other}: x\n" for other in sorted(given_keys))
    refused_or_read(head + (f"{section}: {{{line}}}\n" if section else f"{line}\n"))


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20))
def test_no_override_makes_the_reader_fall_over(override):
    refused_or_read("model: m\ndata: d\n", override)


@few
@given(key=st.sampled_from(list(spec_options())), value=ANYTHING)
def test_no_value_in_an_override_makes_the_reader_fall_over(key, value):
    from scrimp.spec.yaml_text import one_line

    refused_or_read("model: m\ndata: d\n", f"{key}={one_line(value)}")


def refused_or_read(text, *overrides):
    with suppress(SpecError):
        assert isinstance(parse_spec(text, where="job.yaml", overrides=overrides), JobSpec)


def test_money_is_exact():
    spec = parse_spec("model: m\ndata: d\nlimits: {budget: 0.1}\nlocal: {price: 0.07 USD/h}", where="job.yaml")
    assert spec.limits.budget_usd == Decimal("0.1")
    assert spec.local.price_usd_per_hour == Decimal("0.07")
