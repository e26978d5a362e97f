"""Persons who were erased, and how they are known again without being kept.

What is left of an erased person is a keyed hash of each id, email address and telephone number, on
a list in the ledger. Whatever is about to land, and each row that is about to be pushed, is held
against it. This room knows by what a person is known (`identifiers.py`) and what remains of a
record (`person.py`), and reads the list (`listed.py`). It erases nothing.
"""
