"""Files, text and log: what every room needs of the operating system."""
