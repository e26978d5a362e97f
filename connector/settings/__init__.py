"""Settings of one account: from options, the environment, the project file and defaults."""
