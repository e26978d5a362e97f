"""What a spreadsheet would do, before anything is sent: every row read, mapped, checked and priced.

It costs no request: rows are compared with what is landed, and with what earlier pushes have
applied. Whoever needs the landing to be current pulls first. Rows come and go one by one, so that a
file of any length takes the memory of a few; what became of each is put aside on the disk.
"""

from connector.preview.asked import Asked
from connector.preview.foresee import preview
from connector.preview.foreseen import Preview

__all__ = ["Asked", "Preview", "preview"]
