"""Pure decisions: no clock, socket, database or chance; those are arguments."""
