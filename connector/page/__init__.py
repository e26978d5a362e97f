"""Import page: a spreadsheet is prepared, sent and undone in a browser.

Each answer of a person becomes what the command takes as well: a map file, an option, or a copy of
the file with other cells. What is right is decided in `pushes` and `spreadsheet` alone.
"""
