"""What a robot file says: its schema, how it is read and written, and where the shipped files are."""
