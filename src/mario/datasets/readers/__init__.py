"""Parsers of published raw files. These modules import torch."""
