"""Spreadsheets: read as they are, mapped to fields, checked, and reported on."""
