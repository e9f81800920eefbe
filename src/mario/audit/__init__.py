"""What shifts in a graph and what holds, in numbers: before any training, and after."""
