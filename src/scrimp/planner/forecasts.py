"""The forecaster that plans are made with: the estimate room, asked once for everything that repeats."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from scrimp.core.estimate import Estimate
from scrimp.core.forecast import EnergyForecast, MemoryForecast, MoneyForecast, TimeForecast
from scrimp.core.market import Offer
from scrimp.core.recipe import Recipe
from scrimp.core.units import GB
from scrimp.estimate.energy.forecast import forecast_energy
from scrimp.estimate.energy.load import load_of
from scrimp.estimate.energy.power import Load
from scrimp.estimate.memory.forecast import forecast_memory
from scrimp.estimate.money import Storage, forecast_money
from scrimp.estimate.time.forecast import checkpoint_bytes, forecast_time
from scrimp.estimate.time.site import Site, here, rented
from scrimp.estimate.time.token_load import TokenLoad, token_load
from scrimp.estimate.tuning import tuning_of
from scrimp.planner.question import Machine, MarketFacts, Workload

# Hub files hold 16-bit weights, older ones 32-bit.
_FILE_BYTES: Mapping[str, int] = {"fp32": 4}
# Trained weights alone, in fp32.
_RESULT_BYTES = 4
# Operating system, CUDA, Python environment.
_SYSTEM_BYTES = 20 * GB
# Token counts estimated from text were within 10% where they could be checked (data/approximate.py).
_ESTIMATED_TOKENS_RATIO = 0.10


@dataclass(frozen=True, slots=True)
class RoomForecaster:
    """See `Forecaster`. Memory is kept by recipe and shards: of a device it depends on its kind alone.

    `sampled_tokens` is what the run generates to show the change.
    """

    workload: Workload
    facts: MarketFacts
    load: TokenLoad
    download_here_bytes: float
    _memory: dict[object, MemoryForecast] = field(default_factory=dict[object, MemoryForecast])
    _time: dict[object, TimeForecast] = field(default_factory=dict[object, TimeForecast])
    _storage: dict[object, Storage] = field(default_factory=dict[object, Storage])
    _load: dict[object, Load] = field(default_factory=dict[object, Load])

    @classmethod
    def of(
        cls, workload: Workload, facts: MarketFacts, *, model_is_here: bool, sampled_tokens: int = 0
    ) -> "RoomForecaster":
        """For one workload; `model_is_here` says whether this machine has the model's files on its disk."""
        return cls(
            workload=workload,
            facts=facts,
            load=token_load(workload.profile, workload.steps, sampled_tokens=sampled_tokens),
            download_here_bytes=0.0 if model_is_here else _file_bytes(workload),
        )

    def memory(self, recipe: Recipe, machine: Machine) -> MemoryForecast:
        """Memory of one card."""
        gpus = machine.gpus if recipe.sharding == "fsdp" else 1
        key = (_key(recipe), gpus, machine.device.kind)
        if key not in self._memory:
            self._memory[key] = forecast_memory(
                self.workload.shape,
                recipe,
                machine.device,
                gpus=gpus,
                longest_row_tokens=min(self.workload.steps.longest_row_tokens, recipe.max_length_tokens),
                trained_share=self.workload.profile.trained_share,
                largest_step_tokens=self.workload.steps.largest_step_tokens,
                steps=self.workload.steps.steps,
            )
        return self._memory[key]

    def tokens_per_s(self, recipe: Recipe, machine: Machine) -> float:
        """Rate of training in real tokens."""
        return self._timed(recipe, machine, here()).tokens_per_s.value

    def time(self, recipe: Recipe, machine: Machine, offer: Offer) -> TimeForecast:
        """Wall-clock time of the whole job; wider where tokens were only estimated."""
        return self._timed(recipe, machine, self._site(offer))

    def money(self, time: TimeForecast, recipe: Recipe, offer: Offer) -> MoneyForecast | None:
        """The bill, None when the price is unknown."""
        return forecast_money(
            time,
            offer,
            self.facts.terms.get(offer.provider),
            storage=self._stored(recipe),
            today=self.facts.today,
            local=self.workload.spec.local if offer.market == "local" else None,
        )

    def energy(self, time: TimeForecast, recipe: Recipe, machine: Machine, offer: Offer) -> EnergyForecast:
        """Electricity and carbon at the offer's place."""
        is_local = offer.market == "local"
        grids = () if is_local or self.facts.grid is None else self.facts.grid(offer.provider, offer.region)
        return forecast_energy(
            time,
            machine.device,
            gpus=machine.gpus,
            load=self._loaded(recipe, machine, time.tokens_per_s.value),
            grids=grids,
            local=self.workload.spec.local if is_local else None,
        )

    def _timed(self, recipe: Recipe, machine: Machine, site: Site) -> TimeForecast:
        key = (_key(recipe), machine, site)
        if key not in self._time:
            found = forecast_time(
                self.workload.shape,
                recipe,
                machine.device,
                gpus=machine.gpus,
                load=self.load,
                site=site,
                probe=self.workload.spec.training.probe,
            )
            self._time[key] = found if self.workload.counted else _with_estimated_tokens(found)
        return self._time[key]

    def _loaded(self, recipe: Recipe, machine: Machine, tokens_per_s: float) -> Load:
        key = (_key(recipe), machine)
        if key not in self._load:
            self._load[key] = load_of(
                self.workload.shape, recipe, machine.device, gpus=machine.gpus, tokens_per_s=tokens_per_s
            )
        return self._load[key]

    def _site(self, offer: Offer) -> Site:
        if offer.market == "local":
            return here(download_bytes=self.download_here_bytes)
        return rented(self.facts.terms.get(offer.provider), download_bytes=_file_bytes(self.workload))

    def _stored(self, recipe: Recipe) -> Storage:
        key = (recipe.method.name, *recipe.method.options.values(), recipe.optimizer)
        if key not in self._storage:
            trainable = tuning_of(self.workload.shape, recipe.method).trainable_params
            # One more checkpoint than is kept: the new one is written before the oldest goes.
            checkpoints = (recipe.keep_checkpoints + 1) * checkpoint_bytes(trainable, recipe.optimizer)
            self._storage[key] = Storage(
                disk_bytes=_SYSTEM_BYTES + _file_bytes(self.workload) + checkpoints,
                artefact_bytes=trainable * _RESULT_BYTES,
            )
        return self._storage[key]


def _file_bytes(workload: Workload) -> float:
    """Size of the model's files."""
    return workload.shape.params * _FILE_BYTES.get(workload.shape.native_dtype, 2)


def _key(recipe: Recipe) -> tuple[object, ...]:
    """What of a recipe changes memory or time within one workload, as a key."""
    return (
        recipe.method.name,
        *recipe.method.options.values(),
        recipe.weight_dtype,
        recipe.compute_dtype,
        recipe.sharding,
        recipe.checkpointing,
        recipe.micro_batch_tokens,
        recipe.max_length_tokens,
        recipe.optimizer,
        recipe.layout,
    )


def _with_estimated_tokens(time: TimeForecast) -> TimeForecast:
    """More doubt about everything that is proportional to the tokens."""
    basis = "tokens estimated from the text"
    return replace(time, total_s=_wider(time.total_s, basis), train_s=_wider(time.train_s, basis))


def _wider(forecast: Estimate[float], basis: str) -> Estimate[float]:
    return Estimate(
        value=forecast.value,
        low=forecast.low * (1 - _ESTIMATED_TOKENS_RATIO),
        high=forecast.high * (1 + _ESTIMATED_TOKENS_RATIO),
        basis=f"{forecast.basis}; {basis}",
    )
