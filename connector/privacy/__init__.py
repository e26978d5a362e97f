"""Privacy: find, erase and retain personal data, with receipts."""
