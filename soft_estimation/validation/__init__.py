"""A model against a recording: errors of a free run, their figures and the report."""
