"""Models: SQL tables for analysts, their checks, the published file and its exports."""
