"""What can be wrong with a spreadsheet as a whole. What is wrong with one row is no error: it is
a problem of that row, and the others go on.
"""

from __future__ import annotations

from pathlib import Path

from connector.errors.root import ConnectorError


class SpreadsheetError(ConnectorError):
    """A spreadsheet cannot be read or written. Nothing of it was used."""

    code = "spreadsheet"
    action = "Check that the file is there, and that this user may read it and write beside it."
    exit_status = 2


class NotASpreadsheet(SpreadsheetError):
    """There is no such file, or it is none that can be read: not csv, tsv, txt or xlsx."""

    code = "not_a_spreadsheet"
    action = "Save it as xlsx, or as csv in UTF-8, and give that file."


class DamagedSpreadsheet(SpreadsheetError):
    """The file is of the right kind and cannot be read to its end; the message says where."""

    code = "damaged_spreadsheet"
    action = "Correct the place that is named, or save the file again from its program."


class UnsafeWorkbook(SpreadsheetError):
    """The workbook would grow without measure when read, or reaches out of itself."""

    code = "unsafe_workbook"
    action = "Copy the table itself, as values, to a new workbook or a csv, and give that file."


class EncodingUnknown(SpreadsheetError):
    """The text's encoding is not certain, or is not the one that was said.

    `offered` is the encoding that would fit, if any, and `samples` has cells as they would then
    read, for the person whose file it is to judge; they are in no message.
    """

    code = "encoding_unknown"

    def __init__(
        self, path: Path, reason: str, *, offered: str | None = None, samples: tuple[str, ...] = ()
    ) -> None:
        self.path, self.offered, self.samples = path, offered, samples
        action = "Save the file as csv in UTF-8, or name its encoding with --encoding."
        if offered is not None:
            action = (
                f"If the sample cells read right, give --encoding {offered}; "
                "else save the file as csv in UTF-8."
            )
        super().__init__(f"{path}: {reason}", action=action)


class DelimiterUnknown(SpreadsheetError):
    """No delimiter, or more than one, fits the rows of the text."""

    code = "delimiter_unknown"
    action = "Name what stands between the cells with --delimiter: comma, semicolon, tab or pipe."


class HeadingsRefused(SpreadsheetError):
    """The first row has no headings, an empty one, or two that are the same."""

    code = "headings_refused"
    action = "Give each column a heading of its own in the first row, and save the file."


class NoRows(SpreadsheetError):
    """There are headings and no row below them that holds anything."""

    code = "no_rows"
    action = "Put the rows below the headings, and save the file."


class SheetUnknown(SpreadsheetError):
    """The workbook has several sheets with rows in them, or none of the name that was given."""

    code = "sheet_unknown"
    action = "Name the sheet with --sheet."


class SpreadsheetChanged(SpreadsheetError):
    """Somebody wrote to the file while it was being read."""

    code = "spreadsheet_changed"
    action = "Wait until nobody writes to the file, then run the command again."


class ReportRefused(SpreadsheetError):
    """A report would not say what happened: a row without an outcome, or one with two.

    It is a mistake of the program's own; no report is written rather than a wrong one.
    """

    code = "report_refused"
    action = "Run 'connector status' to see what was sent, and report the message."
    exit_status = 1
