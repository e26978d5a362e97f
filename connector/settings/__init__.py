"""Settings: one account's, from flags, environment, project file and defaults."""
