"""A robot file as a chain of elements, and the kernels on batches of its states."""
