"""Units: the only place where quantities are converted, parsed and printed.

Base units inside the code: bytes, seconds, Decimal USD, watts, kWh, gCO2e, tokens, FLOP/s.
GB is 10^9 bytes, GiB is 2^30 bytes.
"""

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

KIB = 2**10
MIB = 2**20
GIB = 2**30
GB = 10**9
TB = 10**12
TFLOPS = 10**12

MINUTE_S = 60
HOUR_S = 3600
DAY_S = 86400

_CENT = Decimal("0.01")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|m|min|s)(?![a-z])", re.IGNORECASE)
_UNIT_S = {"s": 1, "min": MINUTE_S, "h": HOUR_S, "d": DAY_S}
_SECONDS = {"d": DAY_S, "h": HOUR_S, "m": MINUTE_S, "min": MINUTE_S, "s": 1}
_BYTES = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": GB, "tb": TB, "kib": KIB, "mib": MIB, "gib": GIB, "tib": 2**40}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?i?b)", re.IGNORECASE)
_MONEY = re.compile(r"\$?\s*(\d+(?:\.\d+)?)\s*(usd|\$)?", re.IGNORECASE)


def usd(amount: Decimal | float | str) -> Decimal:
    """An exact Decimal of `amount`; floats go through their shortest text so 0.1 stays 0.1."""
    return amount if isinstance(amount, Decimal) else Decimal(str(amount))


def parse_usd(text: str) -> Decimal:
    """Read `5`, `5 USD` or `$5.50`.

    Raises:
        ValueError: the text is no amount of US dollars.
    """
    match = _MONEY.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not an amount of money; write 5 USD')
    try:
        return Decimal(match.group(1))
    except InvalidOperation as error:
        raise ValueError(f'"{text}" is not an amount of money; write 5 USD') from error


def parse_duration_s(text: str) -> float:
    """Read `90m`, `12h`, `1d 6h`, `45s`, or plain seconds.

    Raises:
        ValueError: the text is no duration.
    """
    stripped = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", stripped):
        return float(stripped)
    total, rest = 0.0, stripped
    for match in _DURATION.finditer(stripped):
        total += float(match.group(1)) * _SECONDS[match.group(2).lower()]
        rest = rest.replace(match.group(0), "", 1)
    if rest.strip() or not stripped:
        raise ValueError(f'"{text}" is not a duration; write 12h, 90m or 1d 6h')
    return total


def parse_bytes(text: str) -> int:
    """Read `24 GiB`, `80GB`.

    Raises:
        ValueError: the text is no size.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f'"{text}" is not a size; write 24 GiB')
    return int(float(match.group(1)) * _BYTES[match.group(2).lower()])


def format_bytes(size_bytes: float) -> str:
    """`27.1 GiB`, `512 MiB`: binary units, three significant digits."""
    size = abs(size_bytes)
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{_three_digits(size_bytes / unit)} {name}"
    return f"{size_bytes:.0f} B"


def format_usd(amount_usd: Decimal) -> str:
    """`$1,234.50`; amounts under a dollar keep as many digits as say something: `$0.0123`."""
    size = abs(amount_usd)
    sign = "-" if amount_usd < 0 else ""
    if size == 0 or size >= 1:
        return f"{sign}${size.quantize(_CENT, rounding=ROUND_HALF_UP):,}"
    if size < Decimal("0.00001"):
        return f"{sign}<$0.00001"
    places = max(2, 1 - size.adjusted())
    return f"{sign}${size.quantize(Decimal(1).scaleb(-places), rounding=ROUND_HALF_UP):f}"


def format_duration(duration_s: float) -> str:
    """`42 s`, `3.5 min`, `7.2 h`, `2.1 d`."""
    if duration_s < 0:
        return f"-{format_duration(-duration_s)}"
    if duration_s < 90:
        return f"{_three_digits(duration_s)} s"
    if duration_s < 90 * MINUTE_S:
        return f"{_three_digits(duration_s / MINUTE_S)} min"
    if duration_s < 72 * HOUR_S:
        return f"{_three_digits(duration_s / HOUR_S)} h"
    return f"{_three_digits(duration_s / DAY_S)} d"


def format_duration_range(low_s: float, high_s: float, *, like_s: float) -> str:
    """`1.40-2.90`: both ends in the unit that `format_duration(like_s)` uses, so that it stands beside that."""
    unit_s = _UNIT_S[format_duration(like_s).rpartition(" ")[2]]
    return f"{_three_digits(low_s / unit_s)}-{_three_digits(high_s / unit_s)}"


def format_count(number: float) -> str:
    """`950`, `12.4 k`, `4.88 M`, `1.2 B`: rows, tokens, parameters."""
    for size, name in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e4, "k")):
        if abs(number) >= size:
            return f"{_three_digits(number / (1e3 if name == 'k' else size))} {name}"
    return f"{number:,.0f}"


def format_count_of(number: float, noun: str) -> str:
    """`1 step`, `12.4 k steps`: a count with what is counted, in the plural unless it is one."""
    return f"{format_count(number)} {plural(number, noun)}"


def plural(number: float, noun: str) -> str:
    """`step` for one, `steps` for any other number: for counts that are written out in full."""
    return noun if number == 1 else f"{noun}s"


def format_energy(energy_kwh: float) -> str:
    """`3.2 Wh`, `1.8 kWh`, `2.4 MWh`."""
    if abs(energy_kwh) < 1:
        return f"{_three_digits(energy_kwh * 1000)} Wh"
    if abs(energy_kwh) < 1000:
        return f"{_three_digits(energy_kwh)} kWh"
    return f"{_three_digits(energy_kwh / 1000)} MWh"


def format_co2(carbon_gco2e: float) -> str:
    """`12 g`, `1.5 kg`, `2.3 t` of CO2e."""
    if abs(carbon_gco2e) < 1000:
        return f"{_three_digits(carbon_gco2e)} g"
    if abs(carbon_gco2e) < 1e6:
        return f"{_three_digits(carbon_gco2e / 1000)} kg"
    return f"{_three_digits(carbon_gco2e / 1e6)} t"


def format_quantity(name: str, number: float) -> str:
    """A number in the unit that its name ends in: `peak_bytes`, `cost_usd`, `energy_kwh`, `train_s`."""
    if name.endswith("_bytes"):
        return format_bytes(number)
    if name.endswith("_usd"):
        return format_usd(usd(number))
    if name.endswith("_kwh"):
        return format_energy(number)
    if name.endswith("_s"):
        return format_duration(number)
    return f"{number:,.4g}"


def _three_digits(number: float) -> str:
    """Three significant digits, never in exponent form."""
    size = abs(number)
    if size >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if size >= 10 else f"{number:.2f}"
