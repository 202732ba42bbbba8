"""QLoRA: LoRA on a base packed to 4-bit NF4 with double quantisation (Dettmers et al. 2023, arXiv 2305.14314).

The base takes 0.516 bytes a linear weight instead of 2; it is packed when it is loaded, so the rest is LoRA.
"""

from scrimp.methods.lora import LowRank

METHOD = LowRank(
    name="qlora",
    summary="low-rank adapters on 4-bit weights",
    weight_dtypes=("nf4",),
    # The paper's 2e-4 for models up to 13B (its Table 9).
    learning_rate=2e-4,
    needs=(("bitsandbytes", "quant"),),
)
