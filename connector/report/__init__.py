"""Report for a director: one HTML page, written from the marts of the published file."""
