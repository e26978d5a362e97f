"""The Recruitment Connector: the public names, and nothing else."""
