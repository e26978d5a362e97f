"""Operations: alerts, backups, restores and the state of an installation."""
