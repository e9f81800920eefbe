"""Search for settings on validation sets, over many workers."""
