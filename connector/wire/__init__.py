"""The API on the wire: requests out, answers in. Pure: it knows no HTTP library, socket or clock.

Requests are built from declarations, so an address, a scope or a sort is never written twice.
Answers are read strictly: what is not the API's own shape is refused by name, and what the API
adds is kept.
"""

from __future__ import annotations

from connector.wire.answer import Answer, rate_headers, served_at
from connector.wire.envelope import (
    ListAnswer,
    read_deleted,
    read_list,
    read_record,
    read_written,
)
from connector.wire.refusal import error_of, in_doubt
from connector.wire.request import (
    PER_PAGE_MAX,
    Order,
    Request,
    convert_request,
    create_request,
    delete_request,
    get_request,
    list_request,
    update_request,
)

__all__ = [
    "PER_PAGE_MAX",
    "Answer",
    "ListAnswer",
    "Order",
    "Request",
    "convert_request",
    "create_request",
    "delete_request",
    "error_of",
    "get_request",
    "in_doubt",
    "list_request",
    "rate_headers",
    "read_deleted",
    "read_list",
    "read_record",
    "read_written",
    "served_at",
    "update_request",
]
