"""A rendered row is encoded in pieces, cut where an answer begins.

Why cut: many tokenizers merge across that border. "assistant\\n\\n" is one token in front of nothing (as when the model
is asked), and two in front of a word (as when a whole conversation is encoded), so a model trained on whole texts would
see other ids than it is asked with. Cutting where the prompt ends makes both the same by construction; wherever the
tokenizer does not merge across the border, which is the rule, the ids are those of the whole text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

# Characters put in front of a piece, for tokenizers that would otherwise start it with a blank of their own; the
# newline is what transformers uses. The others serve when a piece begins with a newline that would merge.
_ANCHORS = ("\n", "a", "1", ".")


class Piece(NamedTuple):
    """Part of a row's text; its first `trained_chars` characters carry labels. `first`: the row starts with it."""

    text: str
    trained_chars: int = 0
    first: bool = False


class PieceIds(NamedTuple):
    """Token ids of a piece; the first `trained` of them carry labels."""

    ids: list[int]
    trained: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceEncoder:
    """Encodes pieces with one tokenizer, never adding special tokens.

    `free`: a text may be cut anywhere between two tokens and its halves encoded alone. Byte-level tokenizers are;
    SentencePiece-like ones put a blank in front of every text they are given.
    """

    backend: "Tokenizer"
    free: bool
    _free_ends: dict[str, bool] = field(default_factory=dict[str, bool])

    def encode(self, pieces: Sequence[Piece]) -> list[PieceIds]:
        """Ids of each piece, in order; equal pieces are encoded once."""
        if not self.free:
            return [self._anchored(piece) for piece in pieces]
        found: dict[Piece, PieceIds] = {}
        wanted = dict.fromkeys(pieces)
        whole = [piece for piece in wanted if piece.trained_chars in (0, len(piece.text))]
        for piece, encoding in zip(whole, self._fast([piece.text for piece in whole]), strict=True):
            found[piece] = PieceIds(encoding.ids, len(encoding.ids) if piece.trained_chars else 0)
        partly = [piece for piece in wanted if piece not in found]
        encodings = self.backend.encode_batch([piece.text for piece in partly], add_special_tokens=False)
        for piece, encoding in zip(partly, encodings, strict=True):
            found[piece] = _count_trained(encoding, piece.trained_chars, skip=0, shift=0)
        return [found[piece] for piece in pieces]

    def may_cut_after(self, token: str) -> bool:
        """Whether the text behind the added token `token` encodes the same when it is cut off there."""
        if not self.free:
            return False
        if token not in self._free_ends:
            alone = self._ids(token)
            self._free_ends[token] = all(
                self._ids(token + rest) == alone + self._ids(rest) for rest in ("\n", " x", "x", "\n\nx")
            )
        return self._free_ends[token]

    def _anchored(self, piece: Piece) -> PieceIds:
        if piece.first:
            encoding = self.backend.encode(piece.text, add_special_tokens=False)
            return _count_trained(encoding, piece.trained_chars, skip=0, shift=0)
        for anchor in _ANCHORS:
            front = self._ids(anchor)
            encoding = self.backend.encode(anchor + piece.text, add_special_tokens=False)
            if encoding.ids[: len(front)] == front:
                return _count_trained(encoding, piece.trained_chars, skip=len(front), shift=len(anchor))
        encoding = self.backend.encode(piece.text, add_special_tokens=False)
        return _count_trained(encoding, piece.trained_chars, skip=0, shift=0)

    def _ids(self, text: str) -> list[int]:
        return self.backend.encode(text, add_special_tokens=False).ids

    def _fast(self, texts: list[str]) -> "list[Encoding]":
        # Without offsets, a fifth faster.
        return self.backend.encode_batch_fast(texts, add_special_tokens=False)


def piece_encoder(backend: "Tokenizer") -> PieceEncoder:
    """An encoder for this tokenizer, which is tried out once to learn whether texts may be cut."""

    def ids(text: str) -> list[int]:
        return backend.encode(text, add_special_tokens=False).ids

    free = all(ids("a\n" + rest) == ids("a\n") + ids(rest) for rest in ("x", " x", "Xy", ".", "1"))
    return PieceEncoder(backend=backend, free=free)


def _count_trained(encoding: "Encoding", trained_chars: int, *, skip: int, shift: int) -> PieceIds:
    """Ids without the first `skip`; trained are those that begin before character `trained_chars` (+ `shift`)."""
    ids, offsets = encoding.ids[skip:], encoding.offsets[skip:]
    if not trained_chars:
        return PieceIds(ids, 0)
    end = trained_chars + shift
    return PieceIds(ids, next((index for index, (start, _) in enumerate(offsets) if start >= end), len(ids)))
