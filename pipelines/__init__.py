"""Dagster assets that call the functions of `connector`.

This package contains no rules of the API, of pulls or of the warehouse, and no keys: settings are
read when an asset runs and are not part of a run's configuration.
"""
