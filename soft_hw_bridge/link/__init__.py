"""What the clients of several devices share: connection, time and bytes."""
