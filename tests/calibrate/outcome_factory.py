"""Outcomes for tests, by the ratio measured / forecast."""

from random import Random

from scrimp.calibrate.outcome import Outcome


def outcome(ratio: float, *, group: str = "g", region: str = "", forecast: float = 100.0) -> Outcome:
    """A forecast of that size that reality exceeded by that ratio, with an interval of 10% about it."""
    return Outcome(
        group=group,
        label=f"{group} {ratio:g}",
        forecast=forecast,
        low=forecast * 0.9,
        high=forecast * 1.1,
        measured=forecast * ratio,
        region=region,
    )


def random_groups(
    seed: int, *, groups: int, rows: int = 3, region: str = "", between: float = 0.3, within: float = 0.1
) -> list[Outcome]:
    """Groups with an error of their own and rows that scatter about it, both lognormal."""
    random = Random(f"{seed} {region}")
    found: list[Outcome] = []
    for number in range(groups):
        centre = random.gauss(0, between)
        found += [
            outcome(2.718281828459045 ** (centre + random.gauss(0, within)), group=f"{region}{number}", region=region)
            for _ in range(rows)
        ]
    return found
