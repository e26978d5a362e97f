"""The shared lakehouse: where the published files of many accounts meet.

DuckLake, with its catalog in PostgreSQL and its files in a folder or in object storage. An account
publishes its own file as before, and a copy of what a group's analysts need goes here, keyed by
account. Publishers take turns under a lock of the catalog's; what each writes is one transaction.
"""

from connector.lakehouse.finding import InLakehouse, look_for
from connector.lakehouse.forgetting import forget, remove
from connector.lakehouse.place import UNNAMED, Place
from connector.lakehouse.sending import Sent, send, send_and_record
from connector.lakehouse.standing import Standing, standing
from connector.lakehouse.upkeep import Upkeep, maintain

__all__ = [
    "UNNAMED",
    "InLakehouse",
    "Place",
    "Sent",
    "Standing",
    "Upkeep",
    "forget",
    "look_for",
    "maintain",
    "remove",
    "send",
    "send_and_record",
    "standing",
]
