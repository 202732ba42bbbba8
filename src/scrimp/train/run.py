"""One attempt at a job: check, load, go on from the newest whole checkpoint, train to the end, save the result.

Importing this module does not import torch: settings that must be made before that (`process.py`) come first.
"""

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from scrimp.core.errors import BudgetError, InterruptedRunError, ResourceError, ScrimpError
from scrimp.core.recipe import ResolvedJob
from scrimp.core.run import RunEvent
from scrimp.train.durable import damage
from scrimp.train.events import EventLog
from scrimp.train.meter import Meter
from scrimp.train.power.watch import EnergyWatch
from scrimp.train.surroundings import Surroundings

if TYPE_CHECKING:
    from scrimp.train.card import CardFacts
    from scrimp.train.session import Progress, Session

ADAPTER_FOLDER = "adapter"
# DefaultCPUAllocator (a RuntimeError), the system's words for ENOMEM (safetensors, mmap), C++ allocation in oneDNN.
_OUT_OF_MEMORY_SIGNS = ("can't allocate memory", "cannot allocate memory", "std::bad_alloc")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainOutcome:
    """A finished run. `already_finished`: an earlier attempt had done it, and nothing was done now.

    `probed_only`: the job asked for its probe alone, and no step was taken.
    """

    run_id: str
    steps: int
    adapter: str
    total_tokens: int
    trained_tokens: int
    final_loss: float | None
    already_finished: bool = False
    probed_only: bool = False


def train(job: ResolvedJob, *, around: Surroundings) -> TrainOutcome:
    """Work on a job until it is finished, or stop with everything kept that a later attempt needs.

    What happens is written to events.jsonl in the run folder. Called again after whatever end, it goes on from the
    newest whole checkpoint; after a finished run it does nothing.

    Raises:
        InterruptedRunError: a signal came.
        BudgetError: the budget or the deadline would have been passed.
        ScrimpError: it failed; the event log says so too.
    """
    folder = Path(job.run_folder)
    _make_folder(folder)
    energy = EnergyWatch(sources=around.power, clock_s=around.clock.wall_s)
    with EventLog(folder, clock=around.clock, on_event=around.on_event) as events, energy:
        finished = next((event for event in reversed(events.earlier) if event.kind == "finished"), None)
        if finished is not None and damage(folder / ADAPTER_FOLDER) is None:
            return _outcome(job, folder, finished, already_finished=True)
        try:
            return _attempt(job, folder, events, around, energy)
        except (InterruptedRunError, BudgetError):
            raise
        except ScrimpError as error:
            events.emit("failed", error=str(error), exit_code=error.exit_code)
            raise
        except Exception as error:
            known = _out_of_memory(error, job)
            said = known or f"{type(error).__name__}: {error}"
            code = known.exit_code if known else ScrimpError.exit_code
            events.emit("failed", error=str(said), exit_code=code, **({"out_of_memory": True} if known else {}))
            if known is not None:
                raise known from error
            raise


def _attempt(
    job: ResolvedJob, folder: Path, events: EventLog, around: Surroundings, energy: EnergyWatch
) -> TrainOutcome:
    meter = Meter(job, earlier=events.earlier, clock=around.clock, energy=energy)
    try:
        with around.stop.at_once():
            from scrimp.train.engine import look_ahead, train_to_the_end
            from scrimp.train.prepare import prepare

            session, progress, model_folder = prepare(job, events, meter, around)
            session = look_ahead(session, progress)
    except InterruptedRunError:
        events.emit("interrupted", signal=around.stop.asked_by, checkpoint=None)
        raise
    if job.probe == "only":
        return TrainOutcome(
            run_id=job.run_id, steps=0, adapter="", total_tokens=0, trained_tokens=0, final_loss=None, probed_only=True
        )
    progress = train_to_the_end(session, progress)
    return _outcome(job, folder, _finish(session, progress, model_folder))


def _finish(session: "Session", progress: "Progress", model_folder: Path) -> RunEvent:
    """Save the result and say so. Cut off here, the run does it again from its last checkpoint."""
    from scrimp.train.adapter import save_result
    from scrimp.train.boundary import tell_measured
    from scrimp.train.card import card

    facts = _card_facts(session)
    save_result(
        session.folder / ADAPTER_FOLDER,
        session.forward.loaded,
        session.job.recipe,
        model_folder=model_folder,
        base_model=facts.base_model,
        card=card(session.job, facts),
    )
    tell_measured(session)
    return session.events.emit(
        "finished",
        adapter=str(session.folder / ADAPTER_FOLDER),
        steps=progress.step,
        total_tokens=progress.total_tokens,
        trained_tokens=progress.trained_tokens,
        final_loss=progress.loss,
    )


def _card_facts(session: "Session") -> "CardFacts":
    """Held-out losses are read back from the event log: the attempt that measured them may have been an earlier one."""
    from scrimp.models.resolve import public_name
    from scrimp.spec.events import EVENTS_FILE, read_events
    from scrimp.train.card import CardFacts

    told = [event for event in read_events(session.folder / EVENTS_FILE) if event.kind == "evaluated"]
    losses = {str(event.values.get("when")): event.values.get("loss") for event in told}
    before, after = losses.get("before"), losses.get("after")
    return CardFacts(
        base_model=public_name(session.job.recipe.model),
        data_sha256=session.facts.data_sha256,
        model_sha256=session.facts.model_sha256,
        rows=len(session.dataset.train),
        loss_before=before if isinstance(before, float) else None,
        loss_after=after if isinstance(after, float) else None,
        versions=session.facts.versions,
    )


def _outcome(job: ResolvedJob, folder: Path, finished: RunEvent, *, already_finished: bool = False) -> TrainOutcome:
    values = finished.values
    loss = values.get("final_loss")
    return TrainOutcome(
        run_id=job.run_id,
        steps=finished.step,
        adapter=str(folder / ADAPTER_FOLDER),
        total_tokens=_whole(values.get("total_tokens")),
        trained_tokens=_whole(values.get("trained_tokens")),
        final_loss=loss if isinstance(loss, float) else None,
        already_finished=already_finished,
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ResourceError(
            what=f"the run folder {folder} cannot be made: {error.strerror}",
            expected="a folder that can be written to",
            next_step="output_dir=/some/other/folder",
        ) from error


def _out_of_memory(error: Exception, job: ResolvedJob) -> ResourceError | None:
    """The error in our words, if memory ran out; None if it is another one."""
    if not is_out_of_memory(error):
        return None
    smaller = max(job.steps.longest_row_tokens, job.recipe.micro_batch_tokens // 2)
    return ResourceError(
        what=f"memory ran out: {_telling_sentence(error)}",
        expected="a recipe that fits this machine; the last checkpoint is kept",
        next_step=f"training.micro_batch_tokens={smaller}, training.checkpointing=full, or method.name=qlora",
    )


def _telling_sentence(error: Exception) -> str:
    """Of torch's long messages the sentence that says what could not be allocated, else the first."""
    sentences = str(error).strip().split(". ")
    telling = (each for each in sentences if any(sign in each.lower() for sign in _OUT_OF_MEMORY_SIGNS))
    return next(telling, sentences[0]) or type(error).__name__


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory is what ran out, in any of the ways in which torch, oneDNN, Python and the system say so.

    torch's class is known by name, for torch may not be imported.
    """
    if type(error).__name__ == "OutOfMemoryError" or isinstance(error, MemoryError):
        return True
    if isinstance(error, OSError) and error.errno == errno.ENOMEM:
        return True
    text = str(error).lower()
    return any(sign in text for sign in _OUT_OF_MEMORY_SIGNS)
