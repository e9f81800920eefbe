"""Generators of synthetic graphs and labels. These modules import torch."""
