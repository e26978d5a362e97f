"""Texts for the problems of rows that were sent or undone, by code.

Problems of the check have their texts in `connector.spreadsheet.problems`. These are problems of a
push and of an undo, for which the command's texts name options and API fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from connector.errors import codes_of
from connector.errors_api import Answered, TryAgain
from connector.ledger.push_plan import Problem
from connector.spreadsheet.problems import message_of


@dataclass(frozen=True, slots=True)
class ProblemWords:
    """Text of a problem, in one or more wordings, and its action.

    A wording is used only if the problem has a value for each of its placeholders. The values are
    those of `Problem`; `said` is the API's message.
    """

    wordings: tuple[str, ...]
    action: str = ""


_LOOK = "Check the record on the platform."
_SEARCH = "Search for the record on the platform, then choose an action."
_NO_ANSWER = "No response was received, and no matching record was found."
_REJECTED = ("The platform rejected the value: “%(said)s”", "Correct the value.")
_CHANGED = (
    "Changed by someone else. The value is now “%(found)s”.",
    "Changed by someone else. The value is now empty.",
)
_FAILED = ("The platform did not respond correctly.", "Try again.")

SENT: Mapping[str, ProblemWords] = {
    # Rows that were sent with an unknown result.
    "not_found": ProblemWords((_NO_ANSWER,), _SEARCH),
    "not_converted": ProblemWords(
        ("No response was received, and the lead does not look converted.",), _SEARCH
    ),
    "attempts_spent": ProblemWords(
        ("The row was sent several times without a response.",), _SEARCH
    ),
    "look_incomplete": ProblemWords(
        ("No response was received, and the list of records could not be read completely.",),
        _SEARCH,
    ),
    "several_matches": ProblemWords(
        ("No response was received, and several records match this row.",), _SEARCH
    ),
    "look_alike": ProblemWords(
        ("No response was received, and a similar record was found.",), _SEARCH
    ),
    "in_doubt_elsewhere": ProblemWords(
        ("A row of another import is about the same record and is unconfirmed.",),
        "Resolve that row first, then import this row again.",
    ),
    # Rows that were not applied, or not as intended.
    "changed_elsewhere": ProblemWords(_CHANGED, "Check which value is correct."),
    "values_differ": ProblemWords(("Saved as “%(found)s”.", "Saved without this value."), _LOOK),
    "record_gone": ProblemWords(("This record no longer exists.",), _LOOK),
    "already_there": ProblemWords(("Someone else has created this record.",), _LOOK),
    "same_row": ProblemWords(("This row has the same values as an earlier row.",)),
    "unfit": ProblemWords(("A value of this row cannot be sent.",), "Correct the value."),
    # Rows whose changes cannot be undone.
    "not_ours": ProblemWords(("This record was not created by this import.",), _LOOK),
    "changed_since": ProblemWords(_CHANGED, _LOOK),
    "never_shown": ProblemWords(("The previous value is not known.",), _LOOK),
    "not_accepted": ProblemWords(("The platform does not accept the previous value.",), _LOOK),
    "not_settled": ProblemWords(
        ("This row is unconfirmed.",), "Resolve the row first, then undo the import."
    ),
    "never_known": ProblemWords(("It is not known whether this row was saved.",), _LOOK),
    "written_elsewhere": ProblemWords(
        ("Another import saved the same values.",), "Undo that import."
    ),
    "irreversible": ProblemWords(("A conversion cannot be undone.",)),
    "declared": ProblemWords(
        ("You chose the existing record for this row yourself, so undo does not delete it.",), _LOOK
    ),
    # Errors of the API, whose messages say what it rejects.
    "refused": ProblemWords((_REJECTED[0],), _REJECTED[1]),
    "answered": ProblemWords((_FAILED[0],), _FAILED[1]),
}
"""Texts by the code of a problem."""


_REFUSALS = frozenset(
    code for code, kind, _ in codes_of(Answered) if not issubclass(kind, TryAgain)
)
"""Codes of errors with a message of the API that explains the rejection."""


def find_problem_words(problem: Problem) -> ProblemWords | None:
    """Return the words of a problem; None if `spreadsheet.problems` has them."""
    if message_of(problem.code) is not None:
        return None
    kind = "refused" if problem.code in _REFUSALS else "answered"
    return SENT.get(problem.code) or SENT[kind]


def choose_wording(words: ProblemWords, values: Mapping[str, str]) -> str:
    """Return the first wording whose placeholders all have a value, or else the last one."""
    for each in words.wordings:
        if all(values.get(name) for name in _PLACES.findall(each)):
            return each
    return words.wordings[-1]


_PLACES = re.compile(r"%\((\w+)\)s")
