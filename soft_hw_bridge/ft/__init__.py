"""ATI Net F/T force/torque sensors: RDT stream, calibration page, status word."""
