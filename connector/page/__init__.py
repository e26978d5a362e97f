"""Import page: a spreadsheet as a grid in the browser, corrected and sent to the platform."""
