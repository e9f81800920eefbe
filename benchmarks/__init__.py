"""Speed and memory, ours against a plain reference and against the machine's limits: ``make benchmark``.

Every part is a module that can be run alone, ``python -m benchmarks.step --quick``; ``python -m benchmarks`` runs
them all. A part leaves its figures as JSON in ``benchmarks/out``, and ``python -m benchmarks.write`` puts them into
docs/performance.md.
"""
