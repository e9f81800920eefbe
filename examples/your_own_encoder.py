"""MARIO with an encoder of PyG and views of your own.

Run it: ``python examples/your_own_encoder.py``.
"""

from torch_geometric.nn import GAT

import mario
from mario.views import Chain, DropEdges, MaskFeatures

if __name__ == "__main__":
    data = mario.load_dataset("good-cbas", shift="concept")
    model = mario.MARIO(
        encoder=GAT(data.num_features, 64, num_layers=2, heads=4, dropout=0.1),
        views=(Chain(DropEdges(0.3), MaskFeatures(0.1)), DropEdges(0.5)),
        epochs=10,
    )
    scores = mario.evaluate(model.fit(data, seed=0, verbose=True), data)
    print(f"id_test {scores['id_test']:.3f}  ood_test {scores['ood_test']:.3f}")
