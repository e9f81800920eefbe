"""Paired tests and rankings over splits and seeds."""
