"""Independent derivations of the five models: positions and energies, differentiated automatically."""
