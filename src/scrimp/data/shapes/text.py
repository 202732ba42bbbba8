"""text: plain documents, trained on whole."""

from scrimp.data.row import SourceRow
from scrimp.data.shapes.shape import RowShape, text_cell

_TEXT = ("text", "content")


class Text(RowShape):
    """One document a row; no chat template is applied."""

    name = "text"
    columns = "a column text (or content)"
    example = {"text": "A whole document."}  # noqa: RUF012

    def recognises(self, row: SourceRow) -> bool:
        """A column of that name."""
        return row.column(_TEXT) is not None

    def content(self, row: SourceRow) -> str:
        """The document."""
        return text_cell(row, row.column(_TEXT), required_by=self)


SHAPE = Text()
