"""Broken inputs, one by one: what a careless or hostile user brings, and what must come of it.

``python -m tests.kinds`` prints how many of each area end how; ``python -m tests.kinds AREA TEXT`` shows each of those
whose name has the text.
"""
