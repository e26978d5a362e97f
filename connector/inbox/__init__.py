"""The inbox: spreadsheets put into `inbox/RESOURCE/` of the data folder, pushed once and put away.

A look finds the files that have settled: two looks, one after the other, found the same. It opens
regular files alone, follows no link, and refuses a name that another system would read otherwise;
what it refuses stays where it is. After its push a file goes to `done/` or `rejected/` with its
report, and never over another file. What goes wrong before that leaves it where it is: pushed
again, it sends nothing that the journal has as applied.
"""

from __future__ import annotations

from connector.inbox.delivery import Delivered, deliver
from connector.inbox.inbox import Inbox, Look, PutAway, Taken, Waiting
from connector.inbox.orders import ORDERS, Orders

__all__ = [
    "ORDERS",
    "Delivered",
    "Inbox",
    "Look",
    "Orders",
    "PutAway",
    "Taken",
    "Waiting",
    "deliver",
]
