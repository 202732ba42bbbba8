"""Tokenizers of two kinds under chat templates of every style, and small files to read."""

import json
from pathlib import Path

import pytest

CONTROL = (
    "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|begin_of_text|>", "<|eot_id|>", "<|start_header_id|>",
    "<|end_header_id|>", "[INST]", "[/INST]", "<start_of_turn>", "<end_of_turn>", "<|user|>", "<|assistant|>",
    "<|system|>", "<|end|>", "<|start|>", "<|message|>", "<|return|>",
)  # fmt: skip

# Style: (template, bos, eos). Shortened from the public templates of the model families they are named after.
TEMPLATES = {
    "chatml": (
        "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
        "{{ '<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n' }}{% endif %}"
        "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "<s>",
        "<|im_end|>",
    ),
    "llama3": (
        "{{- bos_token }}\n{%- for message in messages %}\n"
        "    {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n' + message['content'] | trim"
        " + '<|eot_id|>' }}\n{%- endfor %}\n{%- if add_generation_prompt %}\n"
        "    {{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}\n{%- endif %}",
        "<|begin_of_text|>",
        "<|eot_id|>",
    ),
    "mistral": (
        "{{ bos_token }}{% for message in messages %}"
        "{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}"
        "{% if message['role'] == 'user' %}{{ '[INST] ' + message['content'] + ' [/INST]' }}"
        "{% elif message['role'] == 'assistant' %}{{ ' ' + message['content'] + eos_token }}"
        "{% else %}{{ raise_exception('Only user and assistant roles are supported!') }}{% endif %}{% endfor %}",
        "<s>",
        "</s>",
    ),
    "gemma": (
        "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
        "{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}"
        "{% set role = 'model' if message['role'] == 'assistant' else message['role'] %}"
        "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
        "<s>",
        "</s>",
    ),
    "marked": (
        "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\n' }}"
        "{%- if message.role == 'assistant' %}{%- generation %}{{- message.content + '<|im_end|>' }}"
        "{%- endgeneration %}{{- '\n' }}{%- else %}{{- message.content + '<|im_end|>\n' }}{%- endif %}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}",
        "<s>",
        "<|im_end|>",
    ),
    # As above, but the author's tag closes before the end-of-turn token and opens before the header.
    "marked_badly": (
        "{% for message in messages %}{% if message['role'] == 'assistant' %}"
        "{% generation %}{{ '<|im_start|>assistant\n' + message['content'] }}{% endgeneration %}{{ '<|im_end|>\n' }}"
        "{% else %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}{% endif %}"
        "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "<s>",
        "<|im_end|>",
    ),
    # Phi-3: the end of text stands behind the last turn alone.
    "phi3": (
        "{% for message in messages %}"
        "{{'<|' + message['role'] + '|>\n' + message['content'] + '<|end|>\n'}}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>\n' }}{% else %}{{ eos_token }}{% endif %}",
        "<s>",
        "</s>",
    ),
    # gpt-oss: the last answer ends with another token than those before it.
    "harmony": (
        "{%- for message in messages %}{{- '<|start|>' + message.role + '<|message|>' + message.content }}"
        "{%- if message.role == 'assistant' and loop.last %}{{- '<|return|>' }}{%- else %}{{- '<|end|>' }}{%- endif %}"
        "{%- endfor %}{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}",
        "<s>",
        "<|return|>",
    ),
    # GLM-4: nothing closes a turn but the next one.
    "glm": (
        "<s>{%- for message in messages %}{{- '<|' + message.role + '|>\n' + message.content }}{%- endfor %}"
        "{%- if add_generation_prompt %}{{- '<|assistant|>' }}{%- endif %}",
        "<s>",
        "</s>",
    ),
    # Qwen3: reasoning is cut out of earlier answers, the last one shows it, even when it is empty.
    "thinking": (
        "{%- for message in messages %}{%- if message.role == 'assistant' %}"
        "{%- set content = message.content.split('</think>')[-1].lstrip('\n') %}"
        "{{- '<|im_start|>assistant\n' }}{%- if loop.last %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}{{- content }}"
        "{%- for call in message.tool_calls or [] %}{{- '<tool_call>' + call | tojson + '</tool_call>' }}{%- endfor %}"
        "{{- '<|im_end|>\n' }}"
        "{%- else %}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endif %}"
        "{%- endfor %}{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}",
        "<s>",
        "<|im_end|>",
    ),
}


def _train(kind: str, texts: list[str]):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    if kind == "bytes":
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
    else:
        # As SentencePiece does: a blank in front of every text, blanks part of the words.
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
        tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
        alphabet = [chr(code) for code in range(10, 127)] + ["▁"]
    trainer = trainers.BpeTrainer(
        vocab_size=1024, special_tokens=list(CONTROL), initial_alphabet=alphabet, show_progress=False
    )
    # Runs of line ends, so that tokens of several of them exist as in real vocabularies.
    tokenizer.train_from_iterator([*texts, *["a\n\nb", "\n\n\n", "\n\n"] * 200], trainer)
    return tokenizer


@pytest.fixture(scope="session")
def raw_tokenizers(tmp_path_factory) -> dict[str, Path]:
    """tokenizer.json of a byte-level (`bytes`) and of a SentencePiece-like (`blanks`) tokenizer."""
    rows = (Path(__file__).parents[2] / "examples/data/devils_dictionary.jsonl").read_text(encoding="utf-8")
    texts = [text for row in map(json.loads, rows.splitlines()) for text in (row["prompt"], row["completion"])]
    folder = tmp_path_factory.mktemp("raw-tokenizers")
    found = {}
    for kind in ("bytes", "blanks"):
        found[kind] = folder / f"{kind}.json"
        _train(kind, texts).save(str(found[kind]))
    return found


@pytest.fixture(scope="session")
def model_folder(raw_tokenizers, tmp_path_factory):
    """A function (style of template, kind of tokenizer, more keys of tokenizer_config.json) -> model folder."""

    def make(style: str, kind: str = "bytes", **config) -> Path:
        template, bos, eos = TEMPLATES[style]
        folder = tmp_path_factory.mktemp(f"{style}-{kind}")
        (folder / "tokenizer.json").write_bytes(raw_tokenizers[kind].read_bytes())
        (folder / "chat_template.jinja").write_text(template, encoding="utf-8")
        values = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": bos,
            "eos_token": eos,
            "pad_token": eos,
            **config,
        }
        (folder / "tokenizer_config.json").write_text(json.dumps(values), encoding="utf-8")
        return folder

    return make


@pytest.fixture(scope="session")
def chat_tokenizer(model_folder):
    """A function (style, kind) -> ChatTokenizer, each made once."""
    from scrimp.data.tokenizer import ChatTokenizer

    made = {}

    def get(style: str, kind: str = "bytes") -> ChatTokenizer:
        if (style, kind) not in made:
            made[style, kind] = ChatTokenizer.from_folder(model_folder(style, kind))
        return made[style, kind]

    return get


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_tokenizer_folder):
    from scrimp.data.tokenizer import ChatTokenizer

    return ChatTokenizer.from_folder(tiny_tokenizer_folder)


@pytest.fixture
def write_rows(tmp_path):
    """A function (name, rows) -> path of a JSON Lines file."""

    def write(name: str, rows: list[dict]) -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
        return path

    return write
