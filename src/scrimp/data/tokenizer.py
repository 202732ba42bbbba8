"""A model's tokenizer and chat template, read from its folder without transformers."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from scrimp._lazy import need
from scrimp.core.errors import SpecError
from scrimp.data.pieces import PieceEncoder, piece_encoder
from scrimp.data.template import PLAIN_TEMPLATE, TEMPLATE_DATE, ChatTemplate, compile_template

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PLAIN_ORIGIN = "scrimp's plain template (the model brings none)"
# Tokens decoded together with the one before, so that characters of several tokens and leading blanks come out right.
_DECODE_WINDOW = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedTokens:
    """The tokens that split a text hard, such as <|im_end|>; those that are blanks (Gemma has some) left out."""

    names: frozenset[str]
    lengths: tuple[int, ...]

    @classmethod
    def of(cls, backend: "Tokenizer") -> "AddedTokens":
        """Those of a tokenizer."""
        found = [token.content for token in backend.get_added_tokens_decoder().values()]
        names = frozenset(name for name in found if name and not name.isspace())
        return cls(names=names, lengths=tuple(sorted({len(name) for name in names}, reverse=True)))

    def ending(self, text: str, end: int) -> str | None:
        """The longest such token that `text[:end]` ends with."""
        found = (text[end - length : end] for length in self.lengths if length <= end)
        return next((part for part in found if part in self.names), None)

    def starting(self, text: str, start: int) -> str | None:
        """The longest such token that stands at `start`."""
        found = (text[start : start + length] for length in self.lengths)
        return next((part for part in found if part in self.names), None)

    def ends(self, text: str, start: int) -> Iterator[int]:
        """Where each of the tokens in `text[start:]` ends."""
        names = sorted(self.names, key=len, reverse=True)
        if names:
            for match in re.compile("|".join(map(re.escape, names))).finditer(text, start):
                yield match.end()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatTokenizer:
    """Text to ids and back, and conversations to text.

    `special` holds the special tokens by name (bos_token, eos_token ...). `adds_bos` says whether plain documents begin
    with the beginning-of-text token; what a chat begins with is the template's affair alone, so it is never doubled.
    """

    name: str
    folder: Path
    backend: "Tokenizer"
    template: ChatTemplate
    special: Mapping[str, str]
    adds_bos: bool
    added: AddedTokens
    pieces: PieceEncoder

    @classmethod
    def from_folder(cls, folder: Path, *, now: datetime = TEMPLATE_DATE) -> "ChatTokenizer":
        """Read tokenizer.json, tokenizer_config.json, special_tokens_map.json and chat_template.jinja.

        A folder without tokenizer.json is converted in memory by transformers (the train extra). `now` is the date
        that templates print.

        Raises:
            SpecError: the folder holds no tokenizer, or a broken one.
        """
        config = _json_of(folder / "tokenizer_config.json")
        backend, template_text = _backend(folder)
        # A tokenizer.json may carry these from the program that saved it; rows must never be cut unseen.
        backend.no_truncation()
        backend.no_padding()
        special = _special_tokens({**_json_of(folder / "special_tokens_map.json"), **config})
        adds_bos = _adds_bos(backend, config, special)
        text, origin = _template_of(folder, config)
        if not text:
            text, origin = (template_text, "the converted tokenizer") if template_text else ("", "")
        variables: dict[str, Any] = dict(special)
        if not text:
            text, origin = PLAIN_TEMPLATE, PLAIN_ORIGIN
            variables["starts_with_bos"] = adds_bos
        return cls(
            name=folder.resolve().name,
            folder=folder,
            backend=backend,
            template=_compiled(text, origin=origin, variables=variables, now=now),
            special=special,
            adds_bos=adds_bos,
            added=AddedTokens.of(backend),
            pieces=piece_encoder(backend),
        )

    @property
    def vocab_size(self) -> int:
        """Number of tokens, added ones included."""
        return self.backend.get_vocab_size(with_added_tokens=True)

    @property
    def bos_id(self) -> int | None:
        """Id of the beginning-of-text token."""
        return self._special_id("bos_token")

    @property
    def eos_id(self) -> int | None:
        """Id of the end-of-text token."""
        return self._special_id("eos_token")

    @property
    def pad_id(self) -> int:
        """Id to fill padded rows with. It may be the end-of-text token: masks go by position, never by id."""
        pad = self._special_id("pad_token")
        return next((item for item in (pad, self.eos_id) if item is not None), 0)

    def encode_text(self, text: str) -> list[int]:
        """Ids of a text, with no special tokens added."""
        return self.backend.encode(text, add_special_tokens=False).ids

    def decode(self, ids: Sequence[int], *, skip_special: bool = True) -> str:
        """The text of ids."""
        return self.backend.decode(list(ids), skip_special_tokens=skip_special)

    def token_texts(self, ids: Sequence[int]) -> list[str]:
        """One visible text for each id; a token that is only part of a character is empty, its last part has it."""
        texts: list[str] = []
        done = 0
        for position in range(len(ids)):
            start = max(0, done - _DECODE_WINDOW)
            before = self.decode(ids[start:done], skip_special=False)
            both = self.decode(ids[start : position + 1], skip_special=False)
            last = position == len(ids) - 1
            if both.endswith("\ufffd") and not last and position - done < _DECODE_WINDOW:
                texts.append("")
                continue
            texts.append(both[len(before) :] if both.startswith(before) else both)
            done = position + 1
        return texts

    def _special_id(self, name: str) -> int | None:
        token = self.special.get(name)
        return None if token is None else self.backend.token_to_id(token)


def _backend(folder: Path) -> "tuple[Tokenizer, str]":
    """The tokenizer, and the template text when transformers had to convert it."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if file.is_file():
        try:
            return Tokenizer.from_file(str(file)), ""
        except Exception as error:
            # The Rust side raises plain Exception; whatever it says is about this file.
            raise SpecError(
                what=f"{file} is not a readable tokenizer: {error}",
                expected="a tokenizer.json as `tokenizers` writes it",
                next_step="fetch the model's files again",
            ) from error
    if not folder.is_dir() or not any(folder.glob("*token*")):
        raise SpecError(
            what=f"there is no tokenizer in {folder}",
            expected="a folder with tokenizer.json and tokenizer_config.json",
            next_step="name a model folder that holds its tokenizer",
        )
    transformers = need("transformers", extra="train", why=f"to convert the tokenizer in {folder}")
    try:
        converted = transformers.AutoTokenizer.from_pretrained(str(folder))
    except (OSError, ValueError, KeyError, ImportError) as error:
        raise SpecError(
            what=f"the tokenizer in {folder} cannot be converted: {error}",
            expected="a folder with tokenizer.json, or a tokenizer that transformers can convert",
            next_step="save it with a tokenizer.json, which current transformers does by itself",
        ) from error
    template = converted.chat_template
    return converted.backend_tokenizer, template if isinstance(template, str) else ""


def _json_of(file: Path) -> dict[str, Any]:
    if not file.is_file():
        return {}
    try:
        values: object = json.loads(file.read_bytes())
    except ValueError as error:
        raise SpecError(
            what=f"{file} is not valid JSON: {error}",
            expected="the file as it came with the model",
            next_step="fetch the model's files again",
        ) from error
    return cast("dict[str, Any]", values) if isinstance(values, dict) else {}


def _special_tokens(config: Mapping[str, Any]) -> dict[str, str]:
    """Everything named `..._token` that is a token: a text, or an object with its text as `content`."""
    found: dict[str, str] = {}
    for key, value in config.items():
        content = cast("dict[str, Any]", value).get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and isinstance(content, str):
            found[key] = content
    return found


def _adds_bos(backend: "Tokenizer", config: Mapping[str, Any], special: Mapping[str, str]) -> bool:
    bos = special.get("bos_token")
    if bos is None:
        return False
    if isinstance(config.get("add_bos_token"), bool):
        return bool(config["add_bos_token"])
    return backend.encode("a").ids[:1] == [backend.token_to_id(bos)]


def _template_of(folder: Path, config: Mapping[str, Any]) -> tuple[str, str]:
    """The template's text and the file it stands in; the file of its own goes first, as in transformers."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8"), file.name
    found = config.get("chat_template")
    if isinstance(found, list):
        named = cast("list[dict[str, str]]", found)
        found = {item["name"]: item["template"] for item in named}.get("default", "")
    return (found, "tokenizer_config.json") if isinstance(found, str) else ("", "")


def _compiled(text: str, *, origin: str, variables: Mapping[str, Any], now: datetime) -> ChatTemplate:
    from jinja2.exceptions import TemplateSyntaxError

    try:
        return compile_template(text, origin=origin, variables=variables, now=now)
    except TemplateSyntaxError as error:
        raise SpecError(
            what=f"the chat template in {origin} is broken at line {error.lineno}: {error.message}",
            expected="a Jinja template as transformers reads it",
            next_step="fetch the model's files again, or repair the template",
        ) from error
