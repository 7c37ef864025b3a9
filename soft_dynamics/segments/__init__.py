"""Functions that belong to one type of segment."""
