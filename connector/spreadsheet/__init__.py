"""Spreadsheets: read the rows, map columns to fields, check the rows, and write reports."""
