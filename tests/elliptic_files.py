"""Small files in the format of Elliptic, for tests of whatever reads it or runs on it."""

from pathlib import Path

import numpy as np

LAYOUTS = {"pyg": "EllipticBitcoin/raw", "kaggle": "elliptic_bitcoin_dataset"}
SNAPSHOTS, FEATURES = 49, 165
SHUTDOWN = 45  # the first snapshot after T7; the real dark market closed in the 43rd


def write_elliptic(folder: Path, seed: int = 0, *, layout: str = "pyg", nodes: int = 40) -> Path:
    """Write the three files below ``folder``, laid out as PyG or Kaggle has them, and return ``folder``.

    49 snapshots of about ``nodes`` transactions, payments within a snapshot, a label for a fifth of them. Illicit ones
    are told by the first ten features, and pay one another more often than chance. Their share falls over time, and
    from the shutdown on they are rare and lie where licit ones did. Each snapshot has labels of both kinds.
    """
    rng = np.random.default_rng(seed)
    into = folder / LAYOUTS[layout]
    into.mkdir(parents=True, exist_ok=True)
    features, classes, edges = [], ["txId,class"], ["txId1,txId2"]
    ids = rng.permutation(np.arange(10_000_000, 10_000_000 + 100 * SNAPSHOTS * nodes, 97))
    used = 0
    for step in range(1, SNAPSHOTS + 1):
        size = nodes + int(rng.integers(-5, 6))
        own = ids[used : used + size]
        used += size
        open_market = step < SHUTDOWN
        illicit = rng.random(size) < (0.5 - 0.006 * step if open_market else 0.1)
        labeled = rng.random(size) < 0.2
        illicit[:2], labeled[:2] = (True, False), True
        x = rng.normal(size=(size, FEATURES))
        x[:, :10] += np.where(illicit, 1.0, -1.0)[:, None] * (1.0 if open_market else -0.5)
        x[:, 10:20] += 0.02 * step
        for row in range(size):
            features.append(f"{own[row]},{step}," + ",".join(f"{value:.6g}" for value in x[row]))
            classes.append(f"{own[row]},{('1' if illicit[row] else '2') if labeled[row] else 'unknown'}")
        for source in range(1, size):
            alike = np.flatnonzero(illicit[:source] == illicit[source])
            target = rng.choice(alike) if len(alike) and rng.random() < 0.7 else rng.integers(source)
            edges.append(f"{own[source]},{own[target]}")
    order = rng.permutation(len(classes) - 1) + 1  # no file is in the order of another
    (into / "elliptic_txs_features.csv").write_text("\n".join(features) + "\n")
    (into / "elliptic_txs_classes.csv").write_text("\n".join([classes[0], *(classes[i] for i in order)]) + "\n")
    (into / "elliptic_txs_edgelist.csv").write_text("\n".join(edges) + "\n")
    return folder
