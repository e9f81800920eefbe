"""One run in its folder, and many of them as records."""
