"""The warehouse: the tables of what landed, and the files that they are in.

`work.duckdb` belongs to the connector alone. It is opened, committed and closed per batch, and
never held across a network wait. `recruitment.duckdb` is the copy for analysts, replaced whole.
"""

from connector.warehouse.landing import Landed
from connector.warehouse.runs import ResourceRun, Run
from connector.warehouse.state import StreamState
from connector.warehouse.warehouse import Warehouse

__all__ = ["Landed", "ResourceRun", "Run", "StreamState", "Warehouse"]
