"""Privacy: finding, erasing and retaining people, with receipts."""
