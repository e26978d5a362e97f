"""What can keep an alert from arriving."""

from __future__ import annotations

from connector.errors.root import ConnectorError


class NotDelivered(ConnectorError):
    """An alert did not arrive; the message says where, and never at which address."""

    code = "alert_not_delivered"
    action = (
        "Check the alert_* settings with 'connector alerts --test'; what is due waits, and is sent "
        "again."
    )
