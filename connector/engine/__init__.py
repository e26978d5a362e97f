"""Pure decisions: no clock, socket, database or chance; moments and answers are arguments."""
