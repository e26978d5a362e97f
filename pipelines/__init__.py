"""The connector's work as Dagster assets: few lines each, that call what `connector` exports.

No rule of the API, of pulling or of the warehouse is here, and no key: settings are read when an
asset runs, and never enter a run's configuration.
"""
