"""Words of the page's reports, in the user's language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from connector.ledger.push_plan import Problem
from connector.page.marks import N_
from connector.page.words import PageLanguage
from connector.spreadsheet.columns import HEADINGS_OF_REPORTS
from connector.spreadsheet.report import ReportWords

ROW_OUTCOMES: Mapping[str, str] = {
    "create": N_("To create"),
    "update": N_("To update"),
    "convert": N_("To convert"),
    "created": N_("Record created"),
    "updated": N_("Record updated"),
    "converted": N_("Lead converted"),
    "unchanged": N_("Nothing changed"),
    "duplicate": N_("Duplicate"),
    "invalid": N_("Row not imported"),
    "rejected": N_("Row rejected"),
    "not_applied": N_("Saved with other values"),
    "conflict": N_("Changed by others"),
    "held": N_("Row unconfirmed"),
    "not_sent": N_("Row not sent"),
}
"""Words for the result of a row, by outcome."""

_SHEETS = (N_("Summary"), N_("Report"))
_SUMMARY = (N_("Rows"), N_("Result"), N_("Column"), N_("Problem"), N_("Solution"))
_KINDS = (N_("Error"), N_("Warning"))


def report_words(language: PageLanguage, resource: str) -> ReportWords:
    """Return the texts of a report about a resource in the user's language."""
    _ = language.gettext

    def text(problem: Problem) -> str:
        parts = [language.problem_text(problem)]
        if problem.code == "duplicate_in_file" and problem.found:
            parts = [_("The same record as row %(row)s.") % {"row": problem.found}]
        if problem.received:
            parts.append(_("Value: “%(value)s”.") % {"value": problem.received})
        if problem.allowed:
            parts.append(_("Allowed: %(values)s.") % {"values": problem.allowed})
        return " ".join(parts)

    def change(name: str, now: Any, then: Any) -> str:
        ((_, before, after),) = language.format_changes([(name, now, then)], resource)
        return f"{language.field_label(name)}: {before} → {after}"

    def rows(numbers: Sequence[int], more: int) -> str:
        listed = ", ".join(map(str, numbers))
        if not numbers:
            return language.ngettext("%(num)s more row", "%(num)s more rows", more) % {"num": more}
        if more:
            return _("Rows %(rows)s and %(more)s more") % {"rows": listed, "more": more}
        many = language.ngettext("Row %(rows)s", "Rows %(rows)s", len(numbers))
        return many % {"rows": listed}

    first, second = map(_, _SHEETS)
    problem, warning = map(_, _KINDS)
    return ReportWords(
        HEADINGS_OF_REPORTS[language.code],
        (first, second),
        tuple(map(_, _SUMMARY)),
        (problem, warning),
        lambda outcome: _(ROW_OUTCOMES[outcome]),
        language.problem_column,
        text,
        language.fix_text,
        change,
        rows,
    )
