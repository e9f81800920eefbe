"""Hours of kills: `make soak MINUTES=60`."""
