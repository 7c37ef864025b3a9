"""Messages read and written as bytes, without the generated message classes."""
