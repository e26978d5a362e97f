"""Publish: models, audits and the read-only file for analysts."""
