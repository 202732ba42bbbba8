"""Forecasts after a probe."""

from dataclasses import replace

import pytest

from scrimp.calibrate.table import BLANK_RECIPE
from scrimp.core.estimate import exact, within
from scrimp.core.forecast import MemoryForecast, MemoryPhase, MemoryTerm, TimeForecast, TimePart
from scrimp.core.probe import ProbeReading
from scrimp.core.units import GIB
from scrimp.estimate.memory.process import CONSTANTS as PROCESS
from scrimp.estimate.probing import DOUBTS, probed_memory, probed_time

READING = ProbeReading(
    steps=3, device_kind="gpu", peak_bytes=10_000, reserved_bytes=11_000, driver_bytes=12_500, tensor_bytes=4_000,
    step_s=2.0, evaluation_s=5.0, sampling_s=3.0, load_s=20.0, probe_s=6.5, micro_batch_tokens=512,
)  # fmt: skip
PHASES = (MemoryPhase(name="forward_backward", terms=(MemoryTerm(name="weights", size_bytes=8_000.0),)),)
PLANNED = within(8_000.0, low_ratio=0.5, high_ratio=2.0, basis="formula")
MEMORY = MemoryForecast(phases=PHASES, peak_bytes=PLANNED, device_bytes=PLANNED.scaled(1.2), need_bytes=PLANNED)
PARTS = {
    "start-up of the machine": 100.0, "imports and loading": 15.0, "probe": 3.0, "training steps": 100.0,
    "evaluations": 4.0, "samples": 2.0, "checkpoints": 10.0,
}  # fmt: skip
TIME = TimeForecast(
    total_s=within(sum(PARTS.values()), low_ratio=0.5, high_ratio=2.0, basis="formula"),
    train_s=exact(100.0, basis="formula"),
    step_s=exact(1.0, basis="formula"),
    steps=100,
    tokens_per_s=exact(500.0, basis="formula"),
    parts=tuple(TimePart(name=name, duration_s=seconds) for name, seconds in PARTS.items()),
)


def test_on_a_card_each_figure_takes_its_own_measurement():
    found = probed_memory(MEMORY, READING, BLANK_RECIPE, steps=100)
    assert found.peak_bytes.value == pytest.approx(10_000)
    assert found.device_bytes.value == pytest.approx(12_500 * DOUBTS.driver.value)
    # What the driver counts outside the allocator must fit beside the tensors.
    assert found.need_bytes.value == pytest.approx(10_000 + 1_500)
    assert found.phases == MEMORY.phases


def test_on_a_cpu_all_figures_are_the_resident_set():
    found = probed_memory(
        MEMORY, replace(READING, device_kind="cpu", reserved_bytes=None, driver_bytes=None), BLANK_RECIPE, steps=100
    )
    assert found.peak_bytes == found.device_bytes == found.need_bytes
    assert found.peak_bytes.value > 10_000 * DOUBTS.cpu_memory.value


def test_a_cpu_process_grows_after_its_probe_and_more_in_a_longer_run():
    reading = replace(
        READING, device_kind="cpu", peak_bytes=2 * GIB, tensor_bytes=GIB // 4, reserved_bytes=None, driver_bytes=None
    )
    peaks = [
        probed_memory(MEMORY, reading, BLANK_RECIPE, steps=steps).peak_bytes.value for steps in (1, 3, 30, 300, 30_000)
    ]
    assert peaks[0] == peaks[1] == pytest.approx(reading.peak_bytes * DOUBTS.cpu_memory.value)
    assert peaks[1:] == sorted(set(peaks[1:]))
    heap_bytes = reading.peak_bytes - reading.tensor_bytes - PROCESS.base_bytes
    most = reading.peak_bytes + PROCESS.growth_bytes_of(heap_bytes, steps=None)
    assert peaks[-1] < most * DOUBTS.cpu_memory.value
    in_fp32 = replace(BLANK_RECIPE, compute_dtype="fp32")
    assert probed_memory(MEMORY, reading, in_fp32, steps=300).peak_bytes.value == peaks[0]


def test_without_a_driver_the_need_moves_with_the_peak():
    found = probed_memory(MEMORY, replace(READING, driver_bytes=None, reserved_bytes=None), BLANK_RECIPE, steps=100)
    assert found.device_bytes == MEMORY.device_bytes
    assert found.need_bytes.value == pytest.approx(MEMORY.need_bytes.value * 10_000 / 8_000)


def test_the_interval_is_narrower_and_says_why():
    for found, planned in (
        (probed_memory(MEMORY, READING, BLANK_RECIPE, steps=100).peak_bytes, MEMORY.peak_bytes),
        (probed_time(TIME, READING, BLANK_RECIPE).total_s, TIME.total_s),
    ):
        assert found.high / found.low < planned.high / planned.low
        assert found.basis == "measured by a probe of 3 steps"


def test_time_is_the_sum_of_what_was_measured_and_what_is_still_planned():
    found = probed_time(TIME, READING, BLANK_RECIPE)
    parts = {part.name: part.duration_s for part in found.parts}
    assert parts == {
        "start-up of the machine": 100.0, "imports and loading": 20.0, "probe": 6.5, "training steps": 200.0,
        "evaluations": 10.0, "samples": 3.0, "checkpoints": 10.0,
    }  # fmt: skip
    assert found.total_s.value == pytest.approx(sum(parts.values()))
    assert found.step_s.value == 2.0
    assert found.train_s.value == 200.0
    assert found.tokens_per_s.value == pytest.approx(250.0)


def test_evaluations_in_between_are_counted():
    found = probed_time(TIME, READING, replace(BLANK_RECIPE, eval_every_steps=25))
    assert {part.name: part.duration_s for part in found.parts}["evaluations"] == 5 * 5.0


def test_what_was_not_measured_keeps_the_plans_figure():
    found = probed_time(TIME, replace(READING, evaluation_s=None, sampling_s=None), BLANK_RECIPE)
    parts = {part.name: part.duration_s for part in found.parts}
    assert (parts["evaluations"], parts["samples"]) == (4.0, 2.0)


def test_a_reading_is_read_back_from_its_event_and_nothing_else_is():
    from dataclasses import asdict

    assert ProbeReading.of(asdict(READING)) == READING
    assert ProbeReading.of({}) is None
    assert ProbeReading.of(asdict(READING) | {"step_s": None}) is None
    assert ProbeReading.of(asdict(READING) | {"driver_bytes": None}) is not None
