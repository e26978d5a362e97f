"""Report: one HTML page for a director, made from the published file.

The page needs no network and no script. The definitions of figures are the comments on marts and
columns in the published file.
"""
