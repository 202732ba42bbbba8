"""Everything before the first step, cheap refusals first. Only the event log grows, so it may be cut off anywhere."""

import os
import platform
import socket
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from scrimp.core.data import StepPlan
from scrimp.core.recipe import ResolvedJob
from scrimp.data.dataset import Dataset, load_dataset
from scrimp.data.tokenizer import ChatTokenizer
from scrimp.models.prepare import prepare as prepare_model
from scrimp.models.resolve import resolve
from scrimp.train.boundary import stop_at_limit
from scrimp.train.checkpoint import CHECKPOINT_FORMAT, Checkpoint, CheckpointState, CheckpointStore
from scrimp.train.events import EventLog
from scrimp.train.guards import check_trainable_is_saved
from scrimp.train.hardware import card_ids, check_supported, choose_device, device_name, idle_memory
from scrimp.train.load import LoadedModel, load_model
from scrimp.train.meter import Meter
from scrimp.train.optimizer import LossScale, build_optimizer
from scrimp.train.preflight import check_disk, check_job, check_steps
from scrimp.train.process import thread_count
from scrimp.train.resume import check_same_job, differences_to_note, model_sha256, restore, rows_sha256
from scrimp.train.sample import choose_prompts
from scrimp.train.selfcheck import settle_forward
from scrimp.train.session import Progress, Session
from scrimp.train.surroundings import Surroundings

_VERSIONED = ("torch", "transformers", "peft", "tokenizers", "bitsandbytes")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rows:
    """The model's files and the rows that its tokenizer makes of the data."""

    model_folder: Path
    tokenizer: ChatTokenizer
    dataset: Dataset


def prepare(job: ResolvedJob, events: EventLog, meter: Meter, around: Surroundings) -> tuple[Session, Progress, Path]:
    """A session ready for its next step, how far it has come, and the folder of the base model.

    Raises:
        ScrimpError: whatever forbids to train; see the functions called.
    """
    began_s = around.clock.wall_s()
    folder = Path(job.run_folder)
    # Before this process makes a context of its own on the card.
    idle_bytes = idle_memory(around.env)
    device = _start(job, events, meter, around)
    store = CheckpointStore(folder / "checkpoints", keep=job.recipe.keep_checkpoints)
    rows = _read_rows(job, events, around)
    steps = check_steps(job, rows.dataset)
    if steps.trained_tokens != job.steps.trained_tokens:
        events.note(f"{steps.trained_tokens:,} tokens carry labels, the plan counted {job.steps.trained_tokens:,}")
    facts = _facts(job, rows, steps, device)
    checkpoint = _find_checkpoint(store, facts, events)
    loaded = load_model(rows.model_folder, job.recipe, device)
    check_trainable_is_saved(loaded, job.recipe)
    verdict = settle_forward(loaded, job.recipe, rows.dataset.train, pad_id=rows.tokenizer.pad_id)
    for note in verdict.notes:
        events.note(note)
    session = Session(
        job=job,
        folder=folder,
        dataset=rows.dataset,
        tokenizer=rows.tokenizer,
        prompts=choose_prompts(job.sample_prompts, job.data, rows.dataset, rows.tokenizer),
        forward=verdict.forward,
        optimizer=build_optimizer(loaded, job.recipe),
        store=store,
        facts=facts,
        events=events,
        meter=meter,
        clock=around.clock,
        stop=around.stop,
        idle_bytes=idle_bytes,
    )
    check_disk(
        folder,
        checkpoint_bytes=session.checkpoint_bytes,
        checkpoints=job.recipe.keep_checkpoints + 1,
        there_bytes=store.size_bytes,
    )
    progress = _go_on(checkpoint, session, loaded)
    events.emit(
        "loaded",
        load_s=around.clock.wall_s() - began_s,
        params=loaded.params,
        trainable_params=loaded.trainable_params,
        rows=len(rows.dataset.train),
        eval_rows=len(rows.dataset.evaluation),
        layout=verdict.forward.layout,
        attention=verdict.forward.attention,
        loss="selected" if verdict.forward.head is not None else "full",
    )
    return session, progress, rows.model_folder


def _start(job: ResolvedJob, events: EventLog, meter: Meter, around: Surroundings) -> torch.device:
    """Take the device and say that the attempt has begun; refuse what cannot be done here or is not paid for."""
    threads = thread_count(job, around.env)
    device = choose_device(threads=threads)
    price = job.price_usd_per_hour
    events.emit(
        "started",
        pid=os.getpid(),
        host=socket.gethostname(),
        device=device_name(device),
        threads=threads,
        run_id=job.run_id,
        price_usd_per_hour=None if price is None else str(price),
    )
    on_card = device.type == "cuda"
    meter.energy.start(on_card=on_card, cards=card_ids(device))
    if on_card and meter.energy.missing:
        events.note(f"energy: {'; '.join(meter.energy.missing)}")
    check_job(job)
    check_supported(job.recipe, device)
    limit = meter.passed_limit(next_tokens=0, checkpoint_bytes=0, duties_due=False)
    if limit is not None:
        stop_at_limit(events, limit, run_id=job.run_id, checkpoint=None)
    return device


def _read_rows(job: ResolvedJob, events: EventLog, around: Surroundings) -> _Rows:
    model_folder = Path(job.recipe.model).expanduser()
    if not (model_folder / "config.json").is_file():
        source = resolve(job.recipe.model, env=around.env)
        found = prepare_model(source, env=around.env, report=events.note)
        model_folder = Path(found.folder or "")
    tokenizer = ChatTokenizer.from_folder(model_folder)
    return _Rows(
        model_folder=model_folder,
        tokenizer=tokenizer,
        dataset=load_dataset(job.data, tokenizer, base=around.base),
    )


def _facts(job: ResolvedJob, rows: _Rows, steps: StepPlan, device: torch.device) -> CheckpointState:
    """What every checkpoint of this job says beside its step."""
    scale = LossScale.of(job.recipe)
    return CheckpointState(
        format=CHECKPOINT_FORMAT,
        run_id=job.run_id,
        step=0,
        total_tokens=0,
        trained_tokens=0,
        loss=None,
        spent_usd=None,
        train_s=0.0,
        recipe=job.recipe,
        steps=steps,
        rows_sha256=rows_sha256((*rows.dataset.train, *rows.dataset.evaluation)),
        data_sha256=rows.dataset.profile.sha256,
        model_sha256=model_sha256(rows.model_folder),
        groups={},
        loss_scale=scale.scale,
        good_steps=scale.good_steps,
        threads=torch.get_num_threads(),
        device=device_name(device),
        versions={"python": platform.python_version(), **{name: _version(name) for name in _VERSIONED}},
    )


def _find_checkpoint(store: CheckpointStore, facts: CheckpointState, events: EventLog) -> Checkpoint | None:
    """The newest whole checkpoint, if it is of this very job; each newer one that is not whole is named."""
    store.sweep()

    def skip(name: str, reason: str) -> None:
        events.emit("skipped_checkpoint", checkpoint=name, reason=reason)

    checkpoint = store.newest_whole(on_skip=skip)
    if checkpoint is not None:
        check_same_job(checkpoint, facts)
        for note in differences_to_note(checkpoint, facts):
            events.note(note)
    return checkpoint


def _go_on(checkpoint: Checkpoint | None, session: Session, loaded: LoadedModel) -> Progress:
    """Put a checkpoint in place and say so; without one the run begins at its first step."""
    scale = LossScale.of(session.job.recipe)
    if checkpoint is None:
        if session.store.folders():
            session.events.note("no checkpoint is whole: the run begins again")
        session.events.step = 0
        return Progress(loss_scale=scale)
    restore(checkpoint, loaded, session.optimizer)
    state = checkpoint.state
    session.events.step = state.step
    session.events.emit("resumed", checkpoint=checkpoint.folder.name, from_step=state.step)
    return Progress(
        step=state.step,
        total_tokens=state.total_tokens,
        trained_tokens=state.trained_tokens,
        train_s=state.train_s,
        loss=float("nan") if state.loss is None else state.loss,
        loss_scale=LossScale(scale=state.loss_scale, good_steps=state.good_steps, dynamic=scale.dynamic),
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"
