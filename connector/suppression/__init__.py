"""Persons who were erased, and how they are known again without being kept.

What is left of an erased person is a keyed hash of each id, email address and telephone number, on
a list in the ledger. Whatever is about to land, and each row that is about to be pushed, is held
against it. This room knows which fields of a record belong to whom (`owners.py`), by what a person
is known (`identifiers.py`), what remains of a record (`reduction.py`), and reads the list
(`listed.py`). It erases nothing.
"""
