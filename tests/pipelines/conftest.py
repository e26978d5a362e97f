"""What tests of the pipelines share: Dagster does not wait for the disk."""

from __future__ import annotations

import tests.pipelines.unsynced  # noqa: F401
