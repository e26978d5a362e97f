"""Tables of the published file as pandas dataframes.

The file is read whole and let go of before the frame is returned, so that no notebook that stays
open keeps an old file on the disk.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from connector.errors import NothingPublished
from connector.settings.model import load_settings
from connector.warehouse.published_file import read_table
from connector.warehouse.warehouse import Warehouse

_DTYPES = {
    pa.string(): pd.StringDtype(),
    pa.large_string(): pd.StringDtype(),
    pa.bool_(): pd.BooleanDtype(),
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
}
"""Types of pandas that can be missing without becoming something else."""


def read(table: str, *, account: str | None = None) -> pd.DataFrame:
    """A table of the published file, `SCHEMA.TABLE`, as a dataframe; of the unnamed account, or of
    the one that is named. Settings are read from the environment and the project file.

    Timestamps are in UTC and say so, days are `datetime64`, whole numbers, texts and truth values
    are of the types of pandas that can be missing, and amounts are floating point, since pandas
    counts with no other.

    Raises `UnknownName` with the nearest name for a table that is not there, `SettingsError`, and
    `NothingPublished`.
    """
    path = Warehouse(load_settings({"account": account}, os.environ, Path.cwd()).folder).published
    if not path.exists():
        raise NothingPublished(f"{path} is not there: nothing was published yet")
    found = read_table(path, table)
    for place, column in enumerate(found.schema):
        if pa.types.is_decimal(column.type):
            amounts = found.column(place).cast(pa.float64())
            found = found.set_column(place, column.name, amounts)
    frame: Any = found.to_pandas(types_mapper=_DTYPES.get, date_as_object=False)
    assert isinstance(frame, pd.DataFrame)
    return frame
