"""HTC Vive trackers, by serial number, through the calls of OpenVR."""
