"""Operations: alerts, backups, restores and checks of an installation."""
