"""Report: one page of HTML for a director, from the published file alone.

The page needs no network and no script, and holds all that it shows. What each figure means is
said by the file's own comments on its marts and columns, and is not repeated here.
"""
