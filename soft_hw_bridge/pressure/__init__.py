"""Pressure I/O: the guard before the valves, Modbus TCP and serial devices, the stream that drives them."""
