"""Energy meters on recorded counters: a powercap tree, a stand-in for NVML, a recorded nvidia-smi, a tracker."""

import os
import stat
import sys
import threading
from types import SimpleNamespace

import pytest

from scrimp.core.energy import EnergyReading, reading_from
from scrimp.core.errors import MissingPackageError, SpecError
from scrimp.train.power.nvml import NvmlCounter, SampledPower, open_nvml
from scrimp.train.power.rapl import open_rapl
from scrimp.train.power.sampling import Poller, PowerIntegral
from scrimp.train.power.smi import open_smi, power_of
from scrimp.train.power.tracker import open_codecarbon
from scrimp.train.power.watch import OFF, EnergyWatch, PowerSources

KWH_J = 3.6e6
CARD = "GPU-4b9c0d1e-0000-1111-2222-333344445555"


class PowercapTree:
    """A folder like /sys/class/powercap whose counters tests turn."""

    def __init__(self, root):
        self.root = root

    def zone(self, folder, name, energy_uj=0, range_uj=262_143_328_850):
        path = self.root / folder
        path.mkdir(parents=True, exist_ok=True)
        (path / "name").write_text(name + "\n")
        (path / "max_energy_range_uj").write_text(f"{range_uj}\n")
        self.turn(folder, energy_uj)

    def turn(self, folder, energy_uj):
        (self.root / folder / "energy_uj").write_text(f"{energy_uj}\n")


@pytest.fixture
def powercap(tmp_path):
    return PowercapTree(tmp_path / "powercap")


@pytest.fixture
def two_packages(powercap):
    """Two packages with their parts and memory, the platform, and one package once more by another driver."""
    for number in (0, 1):
        powercap.zone(f"intel-rapl:{number}", f"package-{number}", energy_uj=10**9)
        powercap.zone(f"intel-rapl:{number}:0", "core", energy_uj=5)
        powercap.zone(f"intel-rapl:{number}:1", "dram", energy_uj=7 * 10**6)
    powercap.zone("intel-rapl:2", "psys", energy_uj=1)
    powercap.zone("intel-rapl-mmio:0", "package-0", energy_uj=1)
    return powercap


class FakeNvml:
    """What this project calls of NVIDIA's library. Counters are mJ, power mW; None: the card does not tell."""

    class NVMLError(Exception):
        """Its one error."""

    def __init__(self, *, energy_mj=None, power_mw=None, cards=(CARD,)):
        self.energy_mj, self.power_mw, self.cards = energy_mj, power_mw, cards

    def nvmlInit(self):
        pass

    def nvmlDeviceGetCount(self):
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.cards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid not in self.cards:
            raise self.NVMLError("Not Found")
        return uuid

    def nvmlDeviceGetTotalEnergyConsumption(self, handle):
        return self._told(self.energy_mj)

    def nvmlDeviceGetPowerUsage(self, handle):
        return self._told(self.power_mw)

    def _told(self, value):
        if value is None:
            raise self.NVMLError("Not Supported")
        return value


def test_packages_and_memory_are_added_and_their_parts_are_not(two_packages):
    meter, why = open_rapl(two_packages.root)
    assert why == ""
    two_packages.turn("intel-rapl:0", 10**9 + 3 * 10**6)
    two_packages.turn("intel-rapl:1:1", 12 * 10**6)
    two_packages.turn("intel-rapl:0:0", 10**12)
    two_packages.turn("intel-rapl:2", 10**12)
    two_packages.turn("intel-rapl-mmio:0", 10**12)
    reading = meter.read()
    assert reading.cpu_kwh * KWH_J == pytest.approx(3 + 5)
    assert (reading.gpu_kwh, reading.scope) == (None, "cpu")
    assert reading.source == "RAPL, 2 CPU packages and memory"


def test_a_counter_that_turns_over_is_followed_past_its_end(powercap):
    powercap.zone("intel-rapl:0", "package-0", energy_uj=999_000_000, range_uj=10**9)
    meter, _ = open_rapl(powercap.root)
    for turned in (5_000_000, 600_000_000, 2_000_000):
        powercap.turn("intel-rapl:0", turned)
        meter.poll()
    # 6 J to the end and on, 595 J, 402 J to the end and on.
    assert meter.read().cpu_kwh * KWH_J == pytest.approx(6 + 595 + 402)


def test_no_counters_and_forbidden_counters_say_so(powercap, two_packages, tmp_path):
    assert open_rapl(tmp_path / "nothing") == (None, "the processor has no energy counters here")
    secret = two_packages.root / "intel-rapl:1" / "energy_uj"
    secret.chmod(0)
    if os.geteuid() == 0:
        secret.unlink()
        secret.mkdir()
    meter, why = open_rapl(two_packages.root)
    assert meter is None
    assert "root alone" in why or "cannot be read" in why


def test_permission_is_what_the_message_is_about(two_packages, monkeypatch):
    from pathlib import Path

    real = Path.read_text

    def read_text(self, *args, **kwargs):
        if self.name == "energy_uj":
            raise PermissionError(13, "Permission denied")
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "read_text", read_text)
    meter, why = open_rapl(two_packages.root)
    assert meter is None
    assert "root alone" in why
    assert "chmod" in why


def test_a_counter_that_is_lost_on_the_way_makes_the_sum_unknown(two_packages):
    meter, _ = open_rapl(two_packages.root)
    (two_packages.root / "intel-rapl:1" / "energy_uj").write_text("")
    assert meter.read() is None
    two_packages.turn("intel-rapl:1", 10**9)
    assert meter.read() is None


def test_the_cards_own_counter_is_read_where_there_is_one():
    nvml = FakeNvml(energy_mj=5_000_000, power_mw=300_000)
    meter, _ = open_nvml(nvml, (CARD,), clock_s=lambda: 0.0)
    assert isinstance(meter, NvmlCounter)
    assert meter.poll_s is None
    nvml.energy_mj = 8_600_000
    reading = meter.read()
    assert reading.gpu_kwh == pytest.approx(0.001)
    assert (reading.scope, reading.source) == ("gpus", "NVML energy counter of 1 card")
    # The driver is loaded again and counts from 0.
    nvml.energy_mj = 3_600_000
    assert meter.read().gpu_kwh == pytest.approx(0.002)
    nvml.energy_mj = None
    assert meter.read() is None


def test_older_cards_tell_power_which_is_added_up():
    nvml, now = FakeNvml(power_mw=300_000), [0.0]
    meter, _ = open_nvml(nvml, (CARD,), clock_s=lambda: now[0])
    assert isinstance(meter, SampledPower)
    for at_s, power_mw in ((1.0, 300_000), (2.0, 100_000), (3.0, 100_000)):
        now[0], nvml.power_mw = at_s, power_mw
        meter.poll()
    assert meter.read().gpu_kwh * KWH_J == pytest.approx(300 + 200 + 100)
    now[0] = 4.0
    assert meter.read().gpu_kwh * KWH_J == pytest.approx(700)
    assert "sampled every 1 s" in meter.read().source


@pytest.mark.parametrize(
    ("nvml", "cards", "why"),
    [
        (FakeNvml(energy_mj=1, cards=()), (CARD,), "Not Found"),
        (FakeNvml(energy_mj=1, cards=(CARD, "GPU-2")), (), "which of the machine's cards"),
        (FakeNvml(), (CARD,), "neither its energy nor its power"),
    ],
)
def test_a_card_that_cannot_be_measured_says_why(nvml, cards, why):
    meter, said = open_nvml(nvml, cards, clock_s=lambda: 0.0)
    assert meter is None
    assert why in said


def test_the_only_card_needs_no_name():
    assert open_nvml(FakeNvml(energy_mj=1), (), clock_s=lambda: 0.0)[0] is not None


def test_gaps_are_bridged_when_short_and_unknown_when_long():
    steady = PowerIntegral(gap_s=10.0)
    assert steady.joules(0.0) is None
    for at_s in range(0, 1001, 5):
        steady.add(float(at_s), 100.0)
    assert steady.joules(1000.0) == pytest.approx(100_000)
    steady.add(1050.0, 100.0)
    # 50 s of 1,050 were not seen: taken for the mean of the rest.
    assert steady.joules(1050.0) == pytest.approx(105_000)
    steady.add(1300.0, 100.0)
    assert steady.joules(1300.0) is None


def _script(path, lines):
    path.write_text(f"#!{sys.executable}\n{lines}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return (str(path),)


def test_a_recorded_nvidia_smi_is_asked_for_the_card_that_trains(tmp_path):
    # Recorded from the documented output format of --query-gpu=uuid,power.draw.
    recorded = f"GPU-other, 71.20\\n{CARD}, 250.00\\nGPU-third, [N/A]"
    command = _script(
        tmp_path / "nvidia-smi", f"import sys; assert 'uuid,power.draw' in sys.argv[1]; print('{recorded}')"
    )
    now = [0.0]
    meter, why = open_smi(command, (CARD,), clock_s=lambda: now[0])
    assert why == ""
    now[0] = 8.0
    meter.poll()
    reading = meter.read()
    assert reading.gpu_kwh * KWH_J == pytest.approx(2000)
    assert reading.source.startswith("nvidia-smi power")
    assert open_smi(command, ("GPU-third",), clock_s=lambda: 0.0)[0] is None
    assert open_smi(command, (), clock_s=lambda: 0.0)[0] is None


def test_a_command_that_is_missing_or_fails_is_no_meter(tmp_path):
    for command in (("no-such-command",), _script(tmp_path / "broken", "raise SystemExit(9)")):
        meter, why = open_smi(command, (CARD,), clock_s=lambda: 0.0)
        assert (meter, why) == (None, "nvidia-smi does not answer")


def test_power_is_whole_or_unknown():
    assert power_of("a, 100.5\nb, 200", ("a", "b")) == pytest.approx(300.5)
    assert power_of("a, 100.5\nb, [Not Supported]", ("a", "b")) is None
    assert power_of("a, 100.5", ()) == pytest.approx(100.5)
    assert power_of(None, ("a",)) is None


def test_a_poller_polls_until_it_is_stopped():
    seen = threading.Event()
    poller = Poller(seen.set, period_s=0.001)
    assert seen.wait(5.0)
    poller.stop()
    seen.clear()
    assert not seen.wait(0.02)


class FakeTracker:
    """codecarbon's tracker with figures of its own."""

    def __init__(self, **options):
        self.options, self.started = options, False

    def start(self):
        self.started = True

    def stop(self):
        self.final_emissions_data = SimpleNamespace(energy_consumed=0.5, gpu_energy=0.3, codecarbon_version="3.3.2")


def test_a_tracker_answers_once_it_is_closed_and_sends_nothing():
    made = []
    meter = open_codecarbon((CARD,), make=lambda **options: made.append(FakeTracker(**options)) or made[0])
    assert meter.read() is None
    meter.close()
    meter.close()
    reading = meter.read()
    assert (reading.energy_kwh, reading.gpu_kwh, reading.scope) == (0.5, 0.3, "process")
    options = made[0].options
    assert made[0].started
    assert (options["output_methods"], options["emissions_endpoint"]) == ([], None)
    assert options["allow_multiple_runs"] is True
    assert options["gpu_ids"] == [CARD]


@pytest.mark.slow
def test_the_real_codecarbon_measures_without_network_files_or_signals(tmp_path, monkeypatch):
    pytest.importorskip("codecarbon")
    import signal
    import socket
    import time

    def refuse(*_):
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    meter = open_codecarbon(())
    until = time.monotonic() + 1.0
    while time.monotonic() < until:
        pass
    meter.close()
    reading = meter.read()
    # A busy second and the start of one process on one machine: more than nothing, less than a kilowatt.
    assert 0 < reading.process_kwh < 1000 * 30 / KWH_J
    assert reading.source.startswith("codecarbon 3")
    assert list(tmp_path.iterdir()) == []
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_a_missing_codecarbon_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "codecarbon", None)
    with pytest.raises(MissingPackageError, match="codecarbon") as caught:
        open_codecarbon(())
    assert "scrimp[energy]" in caught.value.next_step


def _watch(powercap=None, *, nvml=None, now=(0.0,), **sources):
    found = PowerSources(
        nvml=lambda: nvml,
        smi=("no-such-command",),
        powercap=powercap.root if powercap else OFF.powercap / "no",
        **sources,
    )
    return EnergyWatch(sources=found, clock_s=lambda: now[0])


def test_all_meters_are_read_together_and_freeze_at_the_end(two_packages):
    nvml = FakeNvml(energy_mj=0)
    watch = _watch(two_packages, nvml=nvml)
    watch.start(on_card=True, cards=(CARD,))
    nvml.energy_mj = 3_600_000
    two_packages.turn("intel-rapl:0", 10**9 + 1_800_000_000)
    values = watch.values()
    assert values["gpu_kwh"] == pytest.approx(0.001)
    assert values["cpu_kwh"] == pytest.approx(0.0005)
    assert values["energy_kwh"] == pytest.approx(0.0015)
    assert values["energy_source"] == "NVML energy counter of 1 card; RAPL, 2 CPU packages and memory"
    assert values["energy_covers"] == "GPUs, CPU packages and their memory"
    watch.stop()
    nvml.energy_mj = 10**9
    assert watch.values() == values


def test_without_the_library_the_command_is_asked(two_packages, tmp_path):
    command = _script(tmp_path / "nvidia-smi", f"print('{CARD}, 100.0')")
    watch = EnergyWatch(sources=PowerSources(nvml=lambda: None, smi=command, powercap=tmp_path), clock_s=lambda: 0.0)
    with watch:
        watch.start(on_card=True, cards=(CARD,))
        assert watch.reading().source.startswith("nvidia-smi")
    assert watch.missing[0] == "nvidia-ml-py is not installed"


def test_a_processor_is_not_charged_with_cards_that_do_not_train(two_packages):
    watch = _watch(two_packages, nvml=FakeNvml(energy_mj=5))
    watch.start(on_card=False)
    assert watch.reading().scope == "cpu"
    watch.stop()


def test_no_meter_says_nothing_rather_than_zero():
    watch = _watch(nvml=None)
    with watch:
        watch.start(on_card=True, cards=(CARD,))
        assert (watch.reading(), watch.values()) == (None, {})
    assert len(watch.missing) == 3
    off = EnergyWatch(sources=OFF, clock_s=lambda: 0.0)
    off.start(on_card=True)
    assert off.values() == {}


def test_codecarbon_is_used_when_it_is_asked_for():
    watch = _watch(mode="codecarbon", codecarbon=FakeTracker)
    watch.start(on_card=False)
    assert watch.values() == {}
    watch.stop()
    assert watch.reading().process_kwh == 0.5


def test_the_mode_comes_from_the_environment():
    assert PowerSources.of({}).mode == "auto"
    assert PowerSources.of({"SCRIMP_ENERGY": "off"}).mode == "off"
    with pytest.raises(SpecError, match="SCRIMP_ENERGY=wattmeter"):
        PowerSources.of({"SCRIMP_ENERGY": "wattmeter"})


def test_readings_survive_events_and_are_added_only_to_their_like():
    cards, packages = EnergyReading(gpu_kwh=0.2, source="NVML"), EnergyReading(cpu_kwh=0.1, source="RAPL")
    assert reading_from(cards.values()) == cards
    assert reading_from({"peak_bytes": 1}) is None
    assert cards.plus(cards).energy_kwh == pytest.approx(0.4)
    with pytest.raises(ValueError, match="cannot be added"):
        cards.plus(packages)
    with pytest.raises(ValueError, match="no meter"):
        EnergyReading().covers  # noqa: B018
