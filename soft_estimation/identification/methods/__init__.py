"""The identification methods, one module each."""
