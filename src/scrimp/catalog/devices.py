"""GPUs as the catalogue knows them: one row of `data/gpus.csv` is one Device."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

from scrimp.catalog.names import keys_of, squeeze, stands_for
from scrimp.catalog.table import Row, read_rows, read_text
from scrimp.core.errors import UnknownNameError, nearest, unknown_name
from scrimp.core.market import Device
from scrimp.core.units import GB, GIB, TFLOPS

K = TypeVar("K")

# Keys of the efficiency tables: cards of one class reach about the same share of their peak.
DEVICE_CLASSES = (
    "consumer_ampere",
    "consumer_ada",
    "consumer_blackwell",
    "pro_ampere",
    "pro_ada",
    "pro_blackwell",
    "dc_ampere",
    "dc_ampere_inf",
    "dc_ada_inf",
    "dc_hopper",
    "dc_blackwell",
    "turing",
    "volta",
    "pascal",
    "amd_cdna",
    "amd_cdna2",
    "amd_cdna3",
    "amd_cdna4",
    "gaudi",
)
# Where no nvidia-smi total was seen: cards with ECC on GDDR6 give up a sixteenth (T4, L4, A10, L40S), the others less.
USABLE_SHARE = 0.94
MEMORY_NOMINAL = "memory is nominal x 0.94: no driver total was seen"
RATE_UNVERIFIED = "tensor rate not verified by a source"
TABLE = "gpus.csv"
UNSUITED = "unmapped_gpus.csv"
LIST_COMMAND = "list all: scrimp gpus"

_COLUMNS = (
    "gpu",
    "aliases",
    "vendor",
    "architecture",
    "vram_gb_nominal",
    "vram_gib_usable",
    "memory_bandwidth_gb_s",
    "bf16_fp16_dense_tflops",
    "tensor_verified",
    "tensor_source",
    "fp8_dense_tflops",
    "fp32_tflops",
    "tdp_w",
    "nvlink_gb_s",
    "bf16",
    "flash_attention_2",
    "class",
    "other_source",
    "checked",
    "flags",
)
# A bridge joins pairs and is rarely fitted in clouds, C2C joins a GPU to its own CPU: neither links the GPUs of a host.
_NO_GPU_LINK = re.compile(r"\(bridge|C2C", re.IGNORECASE)
_FP32_ACCUMULATE = re.compile(r"(\d+(?:\.\d+)?) \(fp32 acc\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Spellings to canonical names: those of everyone, and those of one provider (`H100@runpod`)."""

    common: Mapping[str, str]
    of_provider: Mapping[tuple[str, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceTable:
    """The parsed table: devices, the nominal memory that offers quote, spellings, and the raw cells for display."""

    devices: Mapping[str, Device]
    nominal_gb: Mapping[str, float]
    names: Names
    cells: Mapping[str, Mapping[str, str]]


def devices() -> Mapping[str, Device]:
    """Every GPU of the catalogue by its canonical name, in the order of the table."""
    return device_table().devices


@lru_cache(maxsize=1)
def device_table() -> DeviceTable:
    """The shipped table, parsed once."""
    return parse_devices(read_text(TABLE), where=TABLE)


def find_device(name: str, *, provider: str | None = None, note: Callable[[str], None] | None = None) -> Device:
    """The device that `name` means, in any spelling: `a100 80gb`, `4090`, `NVIDIA H100 PCIe`.

    A short name that several devices share means the one whose row claims it as an alias (`A100` the 40 GB SXM card,
    `H100` the SXM card), at a provider with a spelling of its own that provider's (`H100` at RunPod is the PCIe card).
    The choice is told to `note`.

    Raises:
        UnknownNameError: no device is called so; the nearest names are suggested.
    """
    table = device_table()
    key = squeeze(name)
    of_provider = table.names.of_provider.get((key, provider or ""))
    if of_provider:
        return table.devices[of_provider]
    found = table.names.common.get(key) or next((n for n in table.devices if stands_for(name, n)), None)
    if found is None:
        if squeeze(name) in unsuited_gpus():
            raise UnknownNameError(
                what=f'GPU "{name}" is rented out but not in the catalogue: {unsuited_gpus()[squeeze(name)]}',
                expected="a card that can train",
                next_step=LIST_COMMAND,
            )
        raise unknown_name("GPU", name, _suggestions(table), list_command=LIST_COMMAND)
    if note and key != squeeze(found):
        others = _others(table, name, found=found)
        if others:
            note(f'"{name}" is read as {found}; also of that name: {", ".join(others)}')
    return table.devices[found]


@lru_cache(maxsize=1)
def unsuited_gpus() -> Mapping[str, str]:
    """GPUs that are rented out and have no row here, by the key of their name, with the reason."""
    rows = read_rows(read_text(UNSUITED), where=UNSUITED, columns=("gpu", "reason", "checked"))
    return {squeeze(row.required("gpu")): row.required("reason") for row in rows}


def match_devices(name: str, *, note: Callable[[str], None] | None = None) -> tuple[Device, ...]:
    """Every device that `name` covers, for filters: `a100` all five A100s, a canonical name that one alone.

    Raises:
        UnknownNameError: no device is called so.
    """
    table = device_table()
    exact = next((d for n, d in table.devices.items() if squeeze(n) == squeeze(name)), None)
    if exact:
        return (exact,)
    family = tuple(device for canonical, device in table.devices.items() if stands_for(name, canonical))
    return family or (find_device(name, note=note),)


def parse_devices(text: str, *, where: str) -> DeviceTable:
    """The table out of its CSV text.

    Raises:
        ScrimpError: a mandatory cell is empty or unreadable, a class is unknown, two rows claim one name.
    """
    found: dict[str, Device] = {}
    nominal: dict[str, float] = {}
    cells: dict[str, Mapping[str, str]] = {}
    common: dict[str, str] = {}
    of_provider: dict[tuple[str, str], str] = {}
    rows = list(read_rows(text, where=where, columns=_COLUMNS))
    # Canonical names first, so that an alias can never take the name of another device.
    for row in rows:
        name = row.required("gpu")
        for key in keys_of(name):
            _claim(common, key, name, row=row)
    for row in rows:
        device = _device(row)
        if device.name in found:
            raise row.refuse(f"{device.name} stands twice", expected="one row for every device")
        found[device.name] = device
        nominal[device.name] = row.required_number("vram_gb_nominal")
        cells[device.name] = row.cells
        for alias in _aliases(row.text("aliases")):
            spelling, _, provider = alias.partition("@")
            if provider:
                _claim(of_provider, (squeeze(spelling), provider), device.name, row=row)
            else:
                _claim(common, squeeze(spelling), device.name, row=row)
    return DeviceTable(
        devices=MappingProxyType(found),
        nominal_gb=nominal,
        names=Names(common=common, of_provider=of_provider),
        cells=cells,
    )


def _others(table: DeviceTable, name: str, *, found: str) -> tuple[str, ...]:
    """Devices that the spelling could as well have meant (RTX6000 is a Quadro, and many mean RTX6000Ada by it)."""
    of_family = stands_for(name, found)
    key = squeeze(name)
    return tuple(
        n for n in table.devices if n != found and (stands_for(name, n) if of_family else squeeze(n).startswith(key))
    )


def _suggestions(table: DeviceTable) -> tuple[str, ...]:
    """Spellings worth suggesting: canonical names and the short aliases."""
    aliases = (alias for device in table.devices.values() for alias in device.aliases)
    return (*table.devices, *(alias for alias in aliases if not any(mark in alias for mark in " @_")))


def _device(row: Row) -> Device:
    flags = [part.strip() for part in row.text("flags").split(";") if part.strip()]
    usable_gib = row.number("vram_gib_usable")
    if usable_gib is None:
        usable_gib = row.required_number("vram_gb_nominal") * USABLE_SHARE
        flags.insert(0, MEMORY_NOMINAL)
    if row.required("tensor_verified") == "no":
        flags.insert(0, RATE_UNVERIFIED)
    fp32 = row.number("fp32_tflops")
    fp8 = _fp8_tflops(row)
    return Device(
        name=row.required("gpu"),
        kind="gpu",
        vendor=row.required("vendor"),
        architecture=row.required("architecture"),
        device_class=_class(row),
        memory_bytes=round(usable_gib * GIB),
        bandwidth_bytes_per_s=row.required_number("memory_bandwidth_gb_s") * GB,
        bf16_flops=row.required_number("bf16_fp16_dense_tflops") * TFLOPS,
        fp32_flops=None if fp32 is None else fp32 * TFLOPS,
        fp8_flops=None if fp8 is None else fp8 * TFLOPS,
        power_w=row.required_number("tdp_w"),
        nvlink_bytes_per_s=_nvlink_gb_s(row) * GB,
        supports_bf16=_yes(row, "bf16"),
        supports_flash_attention=_yes(row, "flash_attention_2"),
        aliases=_aliases(row.text("aliases")),
        source=f"{row.required('tensor_source')}; {row.required('other_source')} (checked {_checked(row)})",
        flags=tuple(flags),
    )


def _class(row: Row) -> str:
    value = row.required("class")
    if value not in DEVICE_CLASSES:
        close = nearest(value, DEVICE_CLASSES)
        hint = f"did you mean {close[0]}? " if close else ""
        raise row.refuse(f'class "{value}" is not known', expected=f"{hint}one of {', '.join(DEVICE_CLASSES)}")
    return value


def _fp8_tflops(row: Row) -> float | None:
    """The fp32-accumulate figure where a card has two; training accumulates in fp32."""
    match = _FP32_ACCUMULATE.search(row.text("fp8_dense_tflops"))
    return float(match.group(1)) if match else row.number("fp8_dense_tflops")


def _nvlink_gb_s(row: Row) -> float:
    cell = row.text("nvlink_gb_s")
    return 0.0 if _NO_GPU_LINK.search(cell) else row.number("nvlink_gb_s") or 0.0


def _yes(row: Row, column: str) -> bool:
    value = row.required(column)
    if value[0] not in "yn":
        raise row.refuse(f'"{column}" is "{value}"', expected="y or n first, words after it")
    return value[0] == "y"


def _checked(row: Row) -> str:
    row.required("checked")
    return str(row.day("checked"))


def _aliases(cell: str) -> tuple[str, ...]:
    return tuple(alias.strip() for alias in cell.split("|") if alias.strip())


def _claim(names: dict[K, str], key: K, device: str, *, row: Row) -> None:
    holder = names.setdefault(key, device)
    if holder != device:
        raise row.refuse(f'"{key}" already means {holder}', expected="a name of its own for every device")
