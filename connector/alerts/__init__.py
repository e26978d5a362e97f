"""Alerts: what does not go as it should, told once to whoever has to know, with the next action.

`facts` looks at the files of an account, `pulls`, `pushes`, `month` and `silence` say what is not
well, and `deciding` which alerts open and end by that; all but the first are pure. `checking` does
it all and sends what is due, through `webhook` and `mail`. `declared` has every alert there is.
"""

from connector.alerts.checking import (
    AlertCheck,
    check_alerts,
    due,
    failure_of,
    standing_alerts,
    trial_message,
    waiting_of,
)
from connector.alerts.declared import DECLARED, Declared
from connector.alerts.facts import JobRun
from connector.alerts.silence import Proof, proof_of
from connector.alerts.sinks import Sink, sinks_of

__all__ = [
    "DECLARED",
    "AlertCheck",
    "Declared",
    "JobRun",
    "Proof",
    "Sink",
    "check_alerts",
    "due",
    "failure_of",
    "proof_of",
    "sinks_of",
    "standing_alerts",
    "trial_message",
    "waiting_of",
]
