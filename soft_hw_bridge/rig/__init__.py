"""The virtual rig: a finely divided MuJoCo robot behind the network protocols of its devices."""
