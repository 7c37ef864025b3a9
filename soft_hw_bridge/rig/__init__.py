"""The virtual rig: a finely divided robot in MuJoCo behind the devices' own network protocols."""
