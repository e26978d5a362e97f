"""The API's twin: the whole API over HTTP, from the declarations, with a store that persists.

It is the demo, the tests' network and, without its HTTP skin, the world of the simulator. The
room imports the declarations and the errors and nothing else of the connector, since a mistake
shared with the client would cancel out. What it does where the API is silent is in
docs/SANDBOX.md.
"""

from connector.sandbox.answer import Answer, Rejection
from connector.sandbox.app import Served
from connector.sandbox.behaviour import BEHAVIOURS, Behaviours, Switch
from connector.sandbox.seed import COUNTS_DEFAULT, LEAD_STATUSES, USERS, seed_store
from connector.sandbox.server import KEY_DEFAULT, Sandbox
from connector.sandbox.store import Store

__all__ = [
    "BEHAVIOURS",
    "COUNTS_DEFAULT",
    "KEY_DEFAULT",
    "LEAD_STATUSES",
    "USERS",
    "Answer",
    "Behaviours",
    "Rejection",
    "Sandbox",
    "Served",
    "Store",
    "Switch",
    "seed_store",
]
