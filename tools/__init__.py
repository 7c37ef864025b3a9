"""Commands of the repository: set-up, launch, demo."""
