"""Erasing people: finding everything that holds somebody, taking it out, and proving it.

A person is found by an address or by a record's id, in work file, ledger, published file, page and
tables of the data folder. Erasing takes the person out of all of them, keeps the rows as counts,
writes the files anew so that the bytes go too, lists keyed hashes so that nobody comes back
unnoticed, and writes a receipt. Retention does the same by rules, for those whose time is over.
"""

from connector.erasure.erase import Erased, erase, release
from connector.erasure.harm import harmed
from connector.erasure.places import Found, Place
from connector.erasure.receipt import Receipt
from connector.erasure.retention import Due, retain
from connector.erasure.rules import Rule, read_rules
from connector.erasure.whereis import whereis

__all__ = [
    "Due",
    "Erased",
    "Found",
    "Place",
    "Receipt",
    "Rule",
    "erase",
    "harmed",
    "read_rules",
    "release",
    "retain",
    "whereis",
]
