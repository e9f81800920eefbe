"""The readers of tables under atheris, which changes bytes by what the code does with them.

    python -m venv --system-site-packages /tmp/atheris && /tmp/atheris/bin/pip install --no-deps atheris
    PYTHONPATH=src:tests /tmp/atheris/bin/python tests/fuzz/atheris_tables.py .fuzz/tables -max_total_time=3600

The first byte of an input says which file it is. The folder of inputs is made from sound files, and grows.
Those of earlier runs are in ``tests/fuzz/tables-corpus``: name it after that folder.
"""

import sys
import warnings
from pathlib import Path

READERS = ["mario.graphs.tables", "mario.untrusted", "networkx.readwrite", "scipy.io"]


def main() -> None:
    """Run until the time is over, or an input fails."""
    import atheris  # type: ignore[import-not-found,unused-ignore]

    with atheris.instrument_imports(include=READERS):
        from fuzz.tables import build, sound

    names = sorted(sound())

    def one_input(content: bytes) -> None:
        if content:
            build(names[content[0] % len(names)], content[1:])

    corpus = next((Path(word) for word in sys.argv[1:] if not word.startswith("-")), None)
    if corpus is not None and not corpus.exists():
        corpus.mkdir(parents=True)
        for number, name in enumerate(names):
            (corpus / name).write_bytes(bytes([number]) + sound()[name])
    warnings.simplefilter("ignore")
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
