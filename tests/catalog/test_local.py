"""This machine as a device: CPU classes by instruction set, GPUs by nvidia-smi, limits of containers."""

from decimal import Decimal

import pytest

from scrimp.catalog.local import cpu_device, local_device, local_gpus, local_offer, read_cpuinfo
from scrimp.catalog.this_machine import read_local
from scrimp.core.job import LocalMachineSpec
from scrimp.core.units import GB, GIB, MIB

XEON = """\
processor\t: 0
vendor_id\t: GenuineIntel
model name\t: INTEL(R) XEON(R) PLATINUM 8581C CPU
siblings\t: {siblings}
cpu cores\t: {cores}
flags\t\t: fpu sse2 avx2 avx512f avx512_bf16 {isa}

processor\t: 1
vendor_id\t: GenuineIntel
"""
ARM = "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd bf16\nCPU implementer\t: 0x41\n"


def _cpu(flags: str, *, siblings: int = 2, cores: int = 2) -> str:
    return f"vendor_id\t: V\nmodel name\t: M\nsiblings\t: {siblings}\ncpu cores\t: {cores}\nflags\t\t: {flags}\n"


def test_an_amx_machine():
    info = XEON.format(siblings=2, cores=2, isa="amx_bf16 amx_tile")
    device = local_device(cpuinfo=info, memory_bytes=24 * GIB, cores=2, gpu_query=None)
    assert device.name == "CPU 2 cores (AMX)"
    assert (device.kind, device.device_class, device.memory_bytes) == ("cpu", "cpu_amx_bf16", 24 * GIB)
    assert device.bf16_flops == pytest.approx(2 * 1.05e12)
    assert device.fp32_flops == pytest.approx(2 * 0.147e12)
    assert device.supports_bf16
    assert "XEON" in device.architecture


@pytest.mark.parametrize(
    ("flags", "label", "bf16"),
    [
        ("avx2 avx512f avx512_bf16 amx_bf16", "AMX", True),
        ("avx2 avx512f avx512_bf16", "AVX-512 bf16", True),
        ("avx2 avx512f", "AVX-512", False),
        ("avx2", "AVX2", False),
        ("sse2", "no AVX2", False),
    ],
)
def test_the_best_instruction_set_counts_and_bf16_needs_one_of_its_own(flags, label, bf16):
    device = cpu_device(_cpu(flags), memory_bytes=GIB, cores=4)
    assert device.name == f"CPU 4 cores ({label})"
    assert device.supports_bf16 is bf16
    assert (device.bf16_flops is not None) is bf16
    assert device.fp32_flops is not None


def test_rates_fall_with_the_instruction_set():
    order = ["amx_bf16", "avx512_bf16", "avx512f", "sse2"]
    rates = [cpu_device(_cpu(isa), memory_bytes=GIB, cores=1).fp32_flops for isa in order]
    assert rates == sorted(rates, reverse=True)


def test_two_threads_of_a_core_share_its_units():
    one = cpu_device(_cpu("avx2", siblings=8, cores=8), memory_bytes=GIB, cores=4)
    shared = cpu_device(_cpu("avx2", siblings=16, cores=8), memory_bytes=GIB, cores=4)
    assert shared.fp32_flops == pytest.approx(one.fp32_flops / 2)


def test_bandwidth_stops_growing():
    small, large = (cpu_device(_cpu("avx2"), memory_bytes=GIB, cores=n).bandwidth_bytes_per_s for n in (2, 64))
    assert small == 2 * 12 * GB
    assert large == 8 * 12 * GB


def test_arm_and_machines_without_proc_are_slow_but_known():
    for info in (ARM, ""):
        device = cpu_device(info, memory_bytes=8 * GIB, cores=1)
        assert device.name == "CPU 1 core (no AVX2)"
        assert device.flags == ("rates not measured: arithmetic",)
    assert "bf16" in read_cpuinfo(ARM).isas
    assert read_cpuinfo("").vendor == "unknown"


def test_a_gpu_is_found_in_the_catalogue_with_the_memory_its_driver_reports():
    answer = "NVIDIA A100-SXM4-80GB, 81920, 400.00, 8.0\nNVIDIA A100-SXM4-80GB, 81920, 400.00, 8.0\n"
    device = local_device(cpuinfo=_cpu("avx2"), memory_bytes=GIB, cores=2, gpu_query=answer)
    assert (device.name, device.device_class) == ("A100-SXM4-80GB", "dc_ampere")
    assert device.memory_bytes == 81920 * MIB
    assert len(local_gpus(answer)) == 2


def test_a_power_limit_below_the_cards_own_is_believed():
    (device,) = local_gpus("NVIDIA GeForce RTX 3090, 24576, 280.00, 8.6")
    assert device.power_w == 280.0


def test_unlike_cards_do_not_train_together():
    assert [d.name for d in local_gpus("NVIDIA L4, 23034, 72.00, 8.9\nTesla T4, 15360, 70.00, 7.5\n")] == ["L4"]


def test_a_gpu_that_no_row_describes_has_unknown_rates():
    (device,) = local_gpus("NVIDIA GeForce RTX 3060 Laptop GPU, 6144, [N/A], 8.6")
    assert device.name == "NVIDIA GeForce RTX 3060 Laptop GPU"
    assert (device.memory_bytes, device.bf16_flops, device.power_w) == (6144 * MIB, None, None)
    assert device.supports_bf16
    (old,) = local_gpus("GeForce GTX 1080, 8192, 180.00")
    assert not old.supports_bf16


def test_unified_memory_keeps_the_catalogues_figure():
    (device,) = local_gpus("NVIDIA GB10, [N/A], [N/A], 12.1")
    assert device.name == "GB10"
    assert device.memory_bytes > 100 * GIB


@pytest.mark.parametrize("answer", ["", "\n", "No devices were found\n"])
def test_no_gpu_means_the_cpu(answer):
    assert local_device(cpuinfo="", memory_bytes=GIB, cores=1, gpu_query=answer).kind == "cpu"


def test_the_local_price_is_the_machine_and_its_electricity():
    device = cpu_device(_cpu("avx2"), memory_bytes=8 * GIB, cores=2)
    spec = LocalMachineSpec(price_usd_per_hour=Decimal("0.10"), power_w=500.0, electricity_usd_per_kwh=Decimal("0.30"))
    offer = local_offer(device, 1, spec)
    assert offer.price_usd_per_hour == Decimal("0.25")
    assert (offer.provider, offer.tier, offer.market, offer.gpu) == ("local", "local", "local", device.name)
    assert offer.host_memory_bytes == 8 * GIB


def _tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


BASE = {"proc/cpuinfo": "flags : avx2\n", "proc/meminfo": "MemTotal:       16777216 kB\nMemFree: 1 kB\n"}


def test_limits_of_cgroup_v2_bind_at_every_level(tmp_path):
    root = _tree(
        tmp_path,
        {
            **BASE,
            "proc/self/cgroup": "0::/box/inner\n",
            "sys/fs/cgroup/box/memory.max": f"{4 * GIB}\n",
            "sys/fs/cgroup/box/inner/memory.max": "max\n",
            "sys/fs/cgroup/box/inner/cpu.max": "100000 100000\n",
        },
    )
    reading = read_local(root=root, run=lambda command: None)
    assert reading.memory_bytes == 4 * GIB
    assert reading.cores == 1
    assert reading.cpuinfo == "flags : avx2\n"
    assert reading.gpu_query is None


def test_limits_of_cgroup_v1_and_its_huge_number_for_none(tmp_path):
    root = _tree(
        tmp_path,
        {
            **BASE,
            "proc/self/cgroup": "5:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": "9223372036854771712\n",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us": "50000\n",
            "sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us": "100000\n",
        },
    )
    reading = read_local(root=root, run=lambda command: None)
    assert (reading.memory_bytes, reading.cores) == (2 * GIB, 1)


def test_without_limits_the_machines_own_size_counts(tmp_path):
    reading = read_local(root=_tree(tmp_path, BASE), run=lambda command: None)
    assert reading.memory_bytes == 16 * GIB
    assert reading.cores >= 1


def test_a_machine_without_proc_still_has_memory_and_cores(tmp_path):
    reading = read_local(root=tmp_path, run=lambda command: None)
    assert reading.memory_bytes > 0
    assert reading.cpuinfo == ""


def test_an_old_driver_is_asked_again_without_the_field_it_does_not_know(tmp_path):
    asked: list[str] = []

    def run(command: list[str]) -> str | None:
        asked.append(command[1])
        return None if "compute_cap" in command[1] else "Tesla T4, 15360, 70.00\n"

    reading = read_local(root=_tree(tmp_path, BASE), run=run)
    assert len(asked) == 2
    (device,) = local_gpus(reading.gpu_query or "")
    assert device.name == "T4"


def test_this_very_machine_can_be_read():
    reading = read_local(run=lambda command: None)
    device = local_device(
        cpuinfo=reading.cpuinfo, memory_bytes=reading.memory_bytes, cores=reading.cores, gpu_query=reading.gpu_query
    )
    assert device.kind == "cpu"
    assert device.memory_bytes > 256 * MIB
