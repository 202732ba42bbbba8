"""Measured runs: the trainer reads its meters at every step and at the end, and they change no byte of the result."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from scrimp.core.errors import InterruptedRunError
from scrimp.spec.events import EVENTS_FILE, read_events
from scrimp.train.power.watch import PowerSources

pytestmark = pytest.mark.train

JOULES_A_STEP = 36.0
KWH_J = 3.6e6


class Counter:
    """A recorded package counter that goes up by as much at every step."""

    def __init__(self, root: Path):
        self.zone = root / "intel-rapl:0"
        self.zone.mkdir(parents=True)
        (self.zone / "name").write_text("package-0\n")
        (self.zone / "max_energy_range_uj").write_text("100000000\n")
        self.uj = 0
        self.sources = PowerSources(nvml=lambda: None, smi=("no-such-command",), powercap=root)
        self._write()

    def turn(self):
        # It turns over once in a run: 100 J are less than three steps.
        self.uj = (self.uj + int(JOULES_A_STEP * 1e6)) % 100_000_000
        self._write()

    def _write(self):
        (self.zone / "energy_uj").write_text(f"{self.uj}\n")


@pytest.fixture
def measured_run(tmp_path, onlooker):
    """Runs an attempt under a recorded counter; returns what it ended with."""
    from scrimp.train.clock import real_clock
    from scrimp.train.run import train
    from scrimp.train.stop import StopSignals
    from scrimp.train.surroundings import Surroundings

    counter = Counter(tmp_path / "powercap")

    def run(job, *, stop_at=None):
        stop = StopSignals()
        watch = onlooker().at("step", counter.turn)
        if stop_at is not None:
            watch.at("step", lambda: stop.ask("SIGTERM"), step=stop_at)
        around = Surroundings(
            env={}, clock=real_clock(), base=Path.cwd(), stop=stop, on_event=watch, power=counter.sources
        )
        try:
            return train(job, around=around)
        except InterruptedRunError as error:
            return error

    return run


def _events(job, kind):
    return [event for event in read_events(Path(job.run_folder) / EVENTS_FILE) if event.kind == kind]


def test_energy_of_attempts_adds_up_and_no_byte_changes(make_job, train_job, measured_run, result_bytes):
    from scrimp.ledger.history import history_of

    plain = make_job(folder="plain")
    train_job(plain, catch=())
    job = make_job(folder="measured")
    steps = job.steps.steps
    assert isinstance(measured_run(job, stop_at=3), InterruptedRunError)
    measured_run(job)

    (first, last) = _events(job, "measured")
    assert first.values["energy_covers"] == "CPU packages and their memory alone"
    # The counter turns after the event of a step is written: the first attempt saw three steps.
    assert first.values["cpu_kwh"] * KWH_J == pytest.approx(3 * JOULES_A_STEP)
    assert last.values["cpu_kwh"] * KWH_J == pytest.approx((steps - 3) * JOULES_A_STEP)
    history = history_of(read_events(Path(job.run_folder) / EVENTS_FILE))
    assert history.energy.energy_kwh * KWH_J == pytest.approx(steps * JOULES_A_STEP)
    # A killed attempt is known up to its last step.
    along = [event.values["cpu_kwh"] for event in _events(job, "step") if event.attempt == 1]
    assert along == sorted(along)
    assert result_bytes(job) == result_bytes(plain)


def test_a_machine_without_meters_says_nothing_of_energy(make_job, train_job):
    job = make_job(epochs=0.5)
    train_job(job, catch=())
    for event in (*_events(job, "step"), *_events(job, "measured")):
        assert not any("kwh" in name or "energy" in name for name in event.values)


@pytest.mark.parametrize("told", ["4b9c0d1e-0000-1111-2222-333344445555", "GPU-4b9c0d1e-0000-1111-2222-333344445555"])
def test_the_card_goes_by_the_name_that_its_driver_gives(monkeypatch, told):
    import torch

    from scrimp.train.hardware import card_ids

    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid=told))
    assert card_ids(torch.device("cuda", 0)) == ("GPU-4b9c0d1e-0000-1111-2222-333344445555",)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace())
    assert card_ids(torch.device("cuda", 0)) == ()
    assert card_ids(torch.device("cpu")) == ()
