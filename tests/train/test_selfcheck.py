"""The self-check: real families pass or fall back, and a leak is never missed."""

from dataclasses import replace

import pytest

pytestmark = pytest.mark.train

SIZES = {
    "vocab_size": 1024, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2,
}  # fmt: skip


def _save(folder, config):
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def _settle(folder, recipe, rows, **changes):
    import torch

    from scrimp.train.load import load_model
    from scrimp.train.selfcheck import settle_forward

    made = replace(recipe(), model=str(folder), **changes)
    loaded = load_model(folder, made, torch.device("cpu"))
    return settle_forward(loaded, made, rows, pad_id=2)


@pytest.fixture(scope="module")
def rows():
    """Two rows of random tokens."""
    from array import array
    from random import Random

    from scrimp.data.row import EncodedRow

    random = Random(0)
    return tuple(
        EncodedRow(
            number=i,
            tokens=array("i", [random.randrange(1024) for _ in range(n)]),
            labels_mask=bytes([0] + [1] * (n - 1)),
        )
        for i, n in enumerate((30, 21))
    )


def _config(family, **changes):
    import transformers

    return getattr(transformers, f"{family}Config")(**SIZES | changes)


@pytest.mark.parametrize(
    "family", ["Llama", "Mistral", "Qwen2", "Qwen3", "Gemma", "Granite", "Cohere", "Olmo2", "Phi3"]
)
def test_dense_families_are_packed_with_the_selected_loss(family, tmp_path, recipe, rows):
    changes = {"logits_scaling": 4.0} if family == "Granite" else {}
    verdict = _settle(_save(tmp_path, _config(family, **changes)), recipe, rows)
    assert verdict.notes == ()
    assert (verdict.forward.layout, verdict.forward.attention) == ("packed", "scrimp_by_document")
    assert verdict.forward.head is not None


def test_granite_and_cohere_scale_their_logits_and_gemma_caps_them(tmp_path, recipe, rows):
    granite = _settle(_save(tmp_path / "granite", _config("Granite", logits_scaling=4.0)), recipe, rows)
    assert granite.forward.head.scale == 0.25
    cohere = _settle(_save(tmp_path / "cohere", _config("Cohere", logit_scale=0.5)), recipe, rows)
    assert cohere.forward.head.scale == 0.5


def test_capped_attention_falls_back_to_padding_and_says_why(tmp_path, recipe, rows):
    verdict = _settle(_save(tmp_path, _config("Gemma2", query_pre_attn_scalar=16)), recipe, rows)
    assert verdict.forward.layout == "padded"
    assert any("softcap" in note for note in verdict.notes)
    assert verdict.forward.head.softcap == 30.0


def test_a_mixture_of_experts_is_packed(tmp_path, recipe, rows):
    config = _config("Qwen3Moe", num_experts=4, num_experts_per_tok=2, moe_intermediate_size=32)
    verdict = _settle(_save(tmp_path, config), recipe, rows, compute_dtype="bf16")
    assert verdict.forward.layout == "packed"


def test_a_state_space_model_is_never_packed(tmp_path, recipe, rows):
    """Mamba has no attention that could be told borders: its state runs on into the next row."""
    import transformers

    config = transformers.MambaConfig(
        vocab_size=1024,
        hidden_size=32,
        num_hidden_layers=2,
        state_size=4,
        bos_token_id=1,
        eos_token_id=2,
        pad_token_id=2,
    )
    from scrimp.core.job import MethodChoice

    verdict = _settle(_save(tmp_path, config), recipe, rows, method=MethodChoice(name="full"))
    assert verdict.forward.layout == "padded"
    assert verdict.notes


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_leak_is_found_in_every_precision(precision, tiny_model_folder, recipe, rows, monkeypatch):
    from scrimp.train import attention

    right = attention.attention_by_document

    def leaking(module, query, key, value, mask, *, document_lengths=None, **others):
        return right(module, query, key, value, mask, document_lengths=None, **others)

    monkeypatch.setattr(attention, "attention_by_document", leaking)
    verdict = _settle(tiny_model_folder, recipe, rows, compute_dtype=precision)
    assert verdict.forward.layout == "padded"
    assert any("do not give the logits that they give alone" in note for note in verdict.notes)
    assert verdict.forward.attention == "sdpa"


def test_wrong_attention_is_found_although_it_keeps_rows_apart(tiny_model_folder, recipe, rows, monkeypatch):
    from scrimp.train import attention

    right = attention.attention_by_document
    monkeypatch.setattr(
        attention,
        "attention_by_document",
        lambda *tensors, scaling, **others: right(*tensors, scaling=scaling * 3, **others),
    )
    verdict = _settle(tiny_model_folder, recipe, rows)
    assert verdict.forward.layout == "padded"
    assert any("usual attention" in note for note in verdict.notes)


def test_a_head_that_does_more_than_it_says_is_not_trusted(tiny_model_folder, recipe, rows, monkeypatch):
    from scrimp.train import selfcheck
    from scrimp.train.head import OutputHead

    monkeypatch.setattr(selfcheck, "find_head", lambda base: OutputHead(linear=base.lm_head, scale=1.5))
    verdict = _settle(tiny_model_folder, recipe, rows)
    assert verdict.forward.head is None
    assert any("way of its own" in note for note in verdict.notes)


def test_what_the_recipe_asks_for_is_kept(tiny_model_folder, recipe, rows):
    verdict = _settle(tiny_model_folder, recipe, rows, layout="padded", loss="full")
    assert (verdict.forward.layout, verdict.forward.head, verdict.notes) == ("padded", None, ())


@pytest.mark.parametrize("training", [True, False])
def test_the_model_is_left_in_the_mode_it_was_in(training, tiny_model_folder, recipe, rows):
    import torch

    from scrimp.train.load import load_model
    from scrimp.train.selfcheck import settle_forward

    made = replace(recipe(), model=str(tiny_model_folder))
    loaded = load_model(tiny_model_folder, made, torch.device("cpu"))
    loaded.module.train(training)
    settle_forward(loaded, made, rows, pad_id=2)
    assert {each.training for each in loaded.module.modules()} == {training}


def test_logits_that_are_no_numbers_are_refused(tiny_model_folder, recipe, rows):
    import torch

    from scrimp.core.errors import TrainingError
    from scrimp.train.load import load_model
    from scrimp.train.selfcheck import settle_forward

    made = replace(recipe(), model=str(tiny_model_folder))
    loaded = load_model(tiny_model_folder, made, torch.device("cpu"))
    loaded.base.model.norm.weight.data.fill_(float("nan"))
    with pytest.raises(TrainingError, match="not finite"):
        settle_forward(loaded, made, rows, pad_id=2)
