"""Forces that the model does not know: loads at the tip and wrenches on any frame."""
