"""Pressure I/O: guard, Modbus TCP and serial devices, and the stream that drives them."""
