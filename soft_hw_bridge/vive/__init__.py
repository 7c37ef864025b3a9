"""HTC Vive trackers, identified by serial number, through OpenVR."""
