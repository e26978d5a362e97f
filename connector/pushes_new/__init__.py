"""Push: spreadsheet rows become creates, updates and conversions."""
