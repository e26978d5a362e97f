"""Spreadsheets: read as they are, mapped to fields, checked row by row, and reported on."""
