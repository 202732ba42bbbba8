"""Names as people give them, to files and shapes; and what is refused."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scrimp.core.errors import NetworkError, SpecError, UnknownNameError
from scrimp.models.hub import Snapshot, hub_cache
from scrimp.models.prepare import prepare, tokenizer_folder
from scrimp.models.resolve import public_name, resolve

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 128,
}
REVISION = "0123456789abcdef0123456789abcdef01234567"


def _folder(path: Path, *files: str, **config: Any) -> Path:
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps({**CONFIG, **config}))
    for name in files:
        (path / name).write_bytes(b"x")
    return path


def _cached(hub_id: str, *files: str, env: Mapping[str, str]) -> Path:
    """A model in the hub's cache, laid out as huggingface_hub does."""
    store = hub_cache(env) / f"models--{hub_id.replace('/', '--')}"
    (store / "refs").mkdir(parents=True)
    (store / "refs" / "main").write_text(REVISION)
    return _folder(store / "snapshots" / REVISION, *files)


@pytest.mark.parametrize(
    "name",
    [
        "smollm2-135m-instruct",
        "SmolLM2-135M-Instruct",
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        " smollm2-135M-instruct ",
    ],
)
def test_the_bundled_model_is_known_without_its_package(name: str, env: Mapping[str, str]):
    source = resolve(name, env=env)
    assert (source.name, source.kind, source.folder) == ("smollm2-135m-instruct", "bundled", None)
    assert source.shape.params == 134_515_008
    assert tokenizer_folder(source, env=env) is None


def test_a_known_name_needs_no_network_and_keeps_the_exact_model(env: Mapping[str, str]):
    source = resolve("llama3.1-8b-instruct", env=env)
    assert (source.name, source.kind, source.folder) == ("meta-llama/Llama-3.1-8B-Instruct", "table", None)
    assert source.shape.params == 8_030_261_248
    assert resolve(source.name, env=env) == source


def test_a_folder_with_weights(tmp_path: Path, env: Mapping[str, str]):
    folder = _folder(tmp_path / "mine", "model.safetensors", "tokenizer.json")
    source = resolve(str(folder), env=env)
    assert (source.name, source.kind, source.folder) == (str(folder), "folder", str(folder))
    assert source.shape.layers == 2
    assert str(folder) in source.shape.source
    assert tokenizer_folder(source, env=env) == folder
    assert prepare(source, env=env, report=print) == source
    assert resolve(source.name, env=env) == source


def test_a_relative_folder_gets_an_absolute_name(
    tmp_path: Path, env: Mapping[str, str], monkeypatch: pytest.MonkeyPatch
):
    _folder(tmp_path / "owner" / "model", "model.safetensors")
    monkeypatch.chdir(tmp_path)
    assert resolve("owner/model", env=env).name == str(tmp_path / "owner" / "model")


def test_a_path_to_a_config_is_enough_to_plan_but_not_to_train(tmp_path: Path, env: Mapping[str, str]):
    folder = _folder(tmp_path / "mine", "tokenizer.json")
    for name in (folder, folder / "config.json"):
        source = resolve(str(name), env=env)
        assert (source.kind, source.folder) == ("config", None)
        assert tokenizer_folder(source, env=env) == folder
        with pytest.raises(SpecError, match="config without weights"):
            prepare(source, env=env, report=print)


def test_pickled_weights_are_refused_unless_asked(tmp_path: Path, env: Mapping[str, str]):
    folder = _folder(tmp_path / "mine", "pytorch_model.bin")
    with pytest.raises(SpecError, match="reading a pickle can run code") as caught:
        resolve(str(folder), env=env)
    assert "SCRIMP_ALLOW_PICKLE=1" in caught.value.next_step
    allowed = {**env, "SCRIMP_ALLOW_PICKLE": "1"}
    assert prepare(resolve(str(folder), env=allowed), env=allowed, report=print).folder == str(folder)


def test_code_of_a_model_is_never_run(tmp_path: Path, env: Mapping[str, str]):
    folder = _folder(tmp_path / "mine", model_type="strange", auto_map={"AutoModel": "modeling_strange.Strange"})
    with pytest.raises(SpecError, match="brings code of its own"):
        resolve(str(folder), env=env)


def test_code_beside_a_family_that_transformers_has_itself_does_no_harm(tmp_path: Path, env: Mapping[str, str]):
    auto_map = {"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}
    folder = _folder(tmp_path / "mine", "model.safetensors", model_type="phi3", auto_map=auto_map)
    assert resolve(str(folder), env=env).shape.family == "phi3"


def test_missing_shards_are_named_before_anything_is_loaded(tmp_path: Path, env: Mapping[str, str]):
    folder = _folder(tmp_path / "mine", "model-00001-of-00002.safetensors")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    source = resolve(str(folder), env=env)
    with pytest.raises(SpecError, match=r"model-00002-of-00002\.safetensors"):
        prepare(source, env=env, report=print)


def test_packed_weights_are_refused_for_training(tmp_path: Path, env: Mapping[str, str]):
    folder = _folder(tmp_path / "mine", "model.safetensors", quantization_config={"quant_method": "gptq", "bits": 4})
    source = resolve(str(folder), env=env)
    with pytest.raises(SpecError, match=r"packed already \(gptq\)"):
        prepare(source, env=env, report=print)


def test_an_adapter_is_not_taken_for_a_model(tmp_path: Path, env: Mapping[str, str]):
    (tmp_path / "adapter").mkdir()
    (tmp_path / "adapter" / "adapter_config.json").write_text("{}")
    with pytest.raises(SpecError, match="holds an adapter and no model"):
        resolve(str(tmp_path / "adapter"), env=env)


@pytest.mark.parametrize(("text", "words"), [("{", "cannot be read as JSON"), ("[1]", "holds list and no object")])
def test_a_broken_config_is_named(tmp_path: Path, env: Mapping[str, str], text: str, words: str):
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(SpecError, match=r"config\.json") as caught:
        resolve(str(tmp_path), env=env)
    assert words in caught.value.what


@pytest.mark.parametrize(
    ("name", "words"), [("./nowhere", "there is no folder"), ("a/b/config.json", "there is no folder")]
)
def test_paths_that_lead_nowhere(name: str, words: str, env: Mapping[str, str]):
    with pytest.raises(SpecError, match=words):
        resolve(name, env=env)


def test_a_model_in_the_cache_of_the_hub_is_read_without_network(env: Mapping[str, str]):
    snapshot = _cached("Owner/Model", "model.safetensors", "tokenizer.json", env=env)
    source = resolve("owner/model", env=env)
    assert (source.name, source.kind, source.revision) == ("Owner/Model", "hub", REVISION)
    assert source.folder == str(snapshot)
    assert tokenizer_folder(source, env=env) == snapshot
    assert prepare(source, env=env, report=print) == source


def test_a_config_alone_in_the_cache_gives_shape_and_tokenizer_but_no_folder(env: Mapping[str, str]):
    snapshot = _cached("Qwen/Qwen3-8B", "tokenizer.json", env=env)
    source = resolve("qwen3-8b", env=env)
    assert (source.kind, source.folder, source.shape.layers) == ("hub", None, 2)
    assert tokenizer_folder(source, env=env) == snapshot
    with pytest.raises(NetworkError, match="HF_HUB_OFFLINE"):
        prepare(source, env=env, report=print)


@pytest.mark.parametrize("key", ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"])
def test_the_cache_is_where_huggingface_hub_puts_it(key: str, tmp_path: Path):
    below = {"HF_HUB_CACHE": ".", "HF_HOME": "hub", "XDG_CACHE_HOME": "huggingface/hub"}[key]
    assert hub_cache({key: str(tmp_path), "HOME": "/nowhere"}) == tmp_path / below


def test_any_other_hub_id_is_fetched(tmp_path: Path, env: Mapping[str, str]):
    asked: list[str] = []

    def fetch(hub_id: str) -> Snapshot:
        asked.append(hub_id)
        return Snapshot(hub_id=hub_id, folder=_folder(tmp_path / "fetched"), revision=REVISION)

    source = resolve("someone/new-model", env=env, fetch=fetch)
    assert asked == ["someone/new-model"]
    assert (source.name, source.kind, source.folder, source.revision) == ("someone/new-model", "hub", None, REVISION)
    assert "someone/new-model at 0123456789ab" in source.shape.source


def test_without_network_it_says_what_to_type(env: Mapping[str, str]):
    with pytest.raises(NetworkError, match=r"someone/Llama-3\.1-8B") as caught:
        resolve("someone/Llama-3.1-8B", env=env)
    assert "meta-llama/Llama-3.1-8B" in caught.value.next_step


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("lama-3.1-8b", "meta-llama/Llama-3.1-8B"), ("qwen3-9b", "Qwen/Qwen3-8B"), ("smollm2-135", "SmolLM2-135M")],
)
def test_unknown_names_are_answered_with_the_nearest(name: str, suggestion: str, env: Mapping[str, str]):
    with pytest.raises(UnknownNameError, match=name) as caught:
        resolve(name, env=env)
    assert suggestion.lower() in caught.value.expected.lower()


def test_an_empty_name_is_unknown(env: Mapping[str, str]):
    with pytest.raises(UnknownNameError):
        resolve("  ", env=env)


@pytest.mark.parametrize(
    ("name", "elsewhere"),
    [
        ("smollm2-135m-instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"),
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        (f"/any/hub/models--owner--my--model/snapshots/{REVISION}", "owner/my--model"),
        (
            f"/any/hub/datasets--owner--rows/snapshots/{REVISION}",
            f"/any/hub/datasets--owner--rows/snapshots/{REVISION}",
        ),
        ("/models/own", "/models/own"),
    ],
)
def test_what_other_machines_call_a_model(name: str, elsewhere: str):
    assert public_name(name) == elsewhere


def test_the_beginning_of_the_bundled_models_name_is_answered_with_it(env: Mapping[str, str]):
    with pytest.raises(UnknownNameError) as caught:
        resolve("smollm2", env=env)
    assert caught.value.next_step == "model: smollm2-135m-instruct"


def test_a_known_model_that_cannot_be_fetched_is_not_advised_to_be_planned_instead_of_itself(env: Mapping[str, str]):
    from scrimp.models.hub import hub_fetch

    with pytest.raises(NetworkError) as caught:
        hub_fetch({**env, "HF_HUB_OFFLINE": "1"})("Qwen/Qwen3-8B")
    assert "scrimp plan needs no network" in caught.value.next_step
    assert "such as" not in caught.value.next_step
