"""The commands `validate`, `identify` and `import_recording`."""
