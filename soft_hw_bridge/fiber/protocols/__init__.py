"""The protocols of fiber interrogators: encoded bytes in, a frame of strains or of the shape out."""
