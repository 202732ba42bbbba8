"""Numbers with a unit, as people write them: `budget: 5 USD` for `budget_usd`, `deadline: 12h` for `deadline_s`.

The unit at the end of a field's name says how its text is read, and without it the name is the short key.
`core.units` does the conversions.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

from scrimp.core.job import Scalar
from scrimp.core.units import DAY_S, HOUR_S, MINUTE_S, parse_duration_s, parse_usd

_MONEY_PATTERN = r"\$?\s*\d+(\.\d+)?\s*([Uu][Ss][Dd]|\$)?"
_NUMBER_PATTERN = r"\d+(\.\d+)?([eE][-+]?\d+)?"
_PER_HOUR = r"(/|per)\s*(h|hr|hour)"
_PER_KWH = r"(/|per)\s*kWh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One unit: the end of the field's name, how its text is read, an example of it.

    `pattern` is the text's form for the JSON Schema. `needs_unit`: a bare number under the short key would be a guess
    (twelve what?), so it is refused there.
    """

    suffix: str
    read: Callable[[str], Decimal | float]
    example: str
    pattern: str
    needs_unit: bool = False


def _money(text: str) -> Decimal:
    # Files that we write hold exact decimals as text, exponents among them.
    return Decimal(text) if re.fullmatch(rf"[-+]?{_NUMBER_PATTERN}", text) else parse_usd(text)


def _money_per_hour(text: str) -> Decimal:
    return _money(_without(text, _PER_HOUR))


def _money_per_kwh(text: str) -> Decimal:
    return _money(_without(text, _PER_KWH))


def _watts(text: str) -> float:
    return _plain_number(_without(text, "W"), example="60 W")


def _carbon_per_kwh(text: str) -> float:
    return _plain_number(_without(text, rf"g(CO2e?)?\s*{_PER_KWH}"), example="475 g/kWh")


def _without(text: str, unit: str) -> str:
    return re.sub(rf"\s*{unit}\s*$", "", text, flags=re.IGNORECASE)


def _plain_number(text: str, *, example: str) -> float:
    if not re.fullmatch(_NUMBER_PATTERN, text.strip()):
        raise ValueError(f'"{text}" is no such quantity; write {example}')
    return float(text)


# Longer endings first: `_usd_per_hour` also ends in nothing shorter by chance.
QUANTITIES = (
    Quantity(
        suffix="_gco2e_per_kwh",
        read=_carbon_per_kwh,
        example="475 g/kWh",
        pattern=rf"^{_NUMBER_PATTERN}\s*g(CO2e?)?\s*/\s*kWh$",
    ),
    Quantity(
        suffix="_usd_per_kwh",
        read=_money_per_kwh,
        example="0.13 USD/kWh",
        pattern=rf"^{_MONEY_PATTERN}\s*({_PER_KWH})?$",
    ),
    Quantity(
        suffix="_usd_per_hour",
        read=_money_per_hour,
        example="2 USD/h",
        pattern=rf"^{_MONEY_PATTERN}\s*({_PER_HOUR})?$",
    ),
    Quantity(suffix="_usd", read=_money, example="5 USD", pattern=rf"^{_MONEY_PATTERN}$"),
    Quantity(suffix="_w", read=_watts, example="60 W", pattern=rf"^{_NUMBER_PATTERN}\s*W?$"),
    Quantity(
        suffix="_s",
        read=parse_duration_s,
        example="12h",
        pattern=r"^(\s*\d+(\.\d+)?\s*(d|h|m|min|s))+$",
        needs_unit=True,
    ),
)


def quantity_of(name: str) -> Quantity | None:
    """The unit at the end of a field's name."""
    return next((item for item in QUANTITIES if name.endswith(item.suffix)), None)


def short_key(name: str) -> str:
    """The key as people write it: the name without its unit."""
    quantity = quantity_of(name)
    return name.removesuffix(quantity.suffix) if quantity else name


def write_quantity(name: str, value: Decimal | float) -> tuple[str, Scalar]:
    """The key and the value of a quantity as people write it, exact: reading gives the same number again."""
    quantity = quantity_of(name)
    assert quantity is not None, name
    if isinstance(value, Decimal):
        unit = quantity.example.split(" ", 1)[1]
        return short_key(name), f"{value:f} {unit}"
    if quantity.suffix != "_s":
        unit = quantity.example.split(" ", 1)[1]
        return short_key(name), f"{repr(float(value)).removesuffix('.0')} {unit}"
    for unit, size_s in (("d", DAY_S), ("h", HOUR_S), ("m", MINUTE_S), ("s", 1)):
        # Two days and more read well in days; 36h and 90m stay what people say.
        if value >= 2 * size_s and value % size_s == 0 and value < 10**15:
            return short_key(name), f"{int(value // size_s)}{unit}"
    return name, value
