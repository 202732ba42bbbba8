"""Where a job runs, as far as time and money go: what must be waited for and fetched before the first step."""

from dataclasses import dataclass

from scrimp.core.market import ProviderTerms

# Wheels of torch and of the NVIDIA libraries that it requires, as pip lists them (pytorch issue 121646, 2024: 2.6 GB),
# and transformers with the rest. Compressed container images are about as large; many hosts have them already.
IMAGE_BYTES = 2.8e9
# Written, hashed and synchronised: on a 2-vCPU machine 1.61 GB took 5.3 to 7.2 s (ten times), 59 MB 0.18 to 0.20 s.
_SAVED_HERE_BYTES_PER_S = 0.3e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """`startup_s` from asking for a machine to a shell on it: 0 here, None when the provider's is not established.

    `download_bytes` is what comes over the network first (model and data; 0 when they lie on disk), `image_bytes` the
    software before that, `save_bytes_per_s` the rate at which checkpoints are written.
    """

    startup_s: float | None
    download_bytes: float
    image_bytes: float = 0.0
    save_bytes_per_s: float = 0.5e9
    rented: bool = True


def here(*, download_bytes: float = 0.0) -> Site:
    """This machine: nothing to wait for."""
    return Site(startup_s=0.0, download_bytes=download_bytes, save_bytes_per_s=_SAVED_HERE_BYTES_PER_S, rented=False)


def rented(terms: ProviderTerms | None, *, download_bytes: float) -> Site:
    """A machine of a provider."""
    return Site(startup_s=terms.startup_s if terms else None, download_bytes=download_bytes, image_bytes=IMAGE_BYTES)
