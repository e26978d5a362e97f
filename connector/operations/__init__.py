"""Operations: problems, notifications, backups, restores and checks of an installation."""
