"""Dataframes of the published file: pandas, and on request Arrow or polars.

Importing pandas takes a while, so this module is imported by the first query.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd
import pyarrow as pa

if TYPE_CHECKING:
    import polars  # type: ignore[import-not-found, unused-ignore] # optional

_TYPES: dict[Any, Any] = {
    pa.string(): pd.StringDtype(),
    pa.large_string(): pd.StringDtype(),
    pa.bool_(): pd.BooleanDtype(),
    **{
        getattr(pa, name.lower())(): getattr(pd, f"{name}Dtype")()
        for name in (f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
    },
}


class Frame(pd.DataFrame):
    """Rows of a query as a pandas frame, and with `arrow` and `pl` in the types of DuckDB.

    Frames that pandas makes of it, for example by filtering, are plain pandas frames.
    """

    _internal_names: ClassVar[list[str]] = [*pd.DataFrame._internal_names, "_table"]  # type: ignore[attr-defined]
    _internal_names_set: ClassVar[set[str]] = set(_internal_names)
    _table: pa.Table

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Frame:
        """Return a frame with the rows of an Arrow table."""
        shown = table
        for place, column in enumerate(table.schema):
            if pa.types.is_decimal(column.type):
                shown = shown.set_column(place, column.name, _to_numbers(table.column(place)))
        frame = cls(shown.to_pandas(types_mapper=_TYPES.get, date_as_object=False))
        frame._table = table
        return frame

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        """Class of the frames that pandas derives from this one."""
        return pd.DataFrame

    def arrow(self) -> pa.Table:
        """Return the rows as they were read, as an Arrow table with decimals and dates.

        Raises:
            ValueError: Rows or columns of the frame were added or removed.
        """
        if self._table.column_names != list(self.columns) or self._table.num_rows != len(self):
            raise ValueError("the frame was changed: use pyarrow.Table.from_pandas(frame)")
        return self._table

    def pl(self) -> polars.DataFrame:
        """Return the rows as they were read, as a polars frame.

        Raises:
            ModuleNotFoundError: polars is not installed.
            ValueError: Rows or columns of the frame were added or removed.
        """
        try:
            import polars  # noqa: PLC0415
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(
                "pl() needs polars. Run 'pip install polars'.", name=error.name
            ) from None
        return polars.from_arrow(self.arrow())


def _to_numbers(decimals: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return decimals as floats, or as integers if their type has no decimal places."""
    if decimals.type.scale == 0:
        with suppress(pa.ArrowInvalid):
            return decimals.cast(pa.int64())
    return decimals.cast(pa.float64())
