"""Import page: prepare, send and undo a spreadsheet in a browser.

Each answer of the user becomes an input of the push command: a mapping file, an option, or a copy
of the file with other cells. Only `pushes` and `spreadsheet` decide what is valid.
"""
