"""The random graphs on which a step is measured."""

import torch
from torch_geometric.data import Data

DEGREE, FEATURES, WORDS, WORDS_A_NODE = 10, 128, 6805, 60


def random_graph(nodes: int, features: int = FEATURES, degree: int = DEGREE, seed: int = 0) -> Data:
    """Both directions of random pairs, ``degree`` neighbors per node on average, normal features."""
    generator = torch.Generator().manual_seed(seed)
    pairs = torch.randint(nodes, (2, nodes * degree // 2), generator=generator)
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    return Data(x=torch.randn(nodes, features, generator=generator), edge_index=edge_index, num_nodes=nodes)


def bag_of_words(nodes: int, words: int = WORDS, a_node: int = WORDS_A_NODE, *, sparse: bool, seed: int = 0) -> Data:
    """As wide and as sparse as coauthor-cs (6,805 words, about 60 per node); the reference takes it dense."""
    data = random_graph(nodes, features=1, seed=seed)
    generator = torch.Generator().manual_seed(seed + 1)
    drawn = torch.randint(words, (nodes, a_node), generator=generator)
    x = torch.zeros(nodes, words).scatter_(1, drawn, 1.0)
    data.x = x.to_sparse_csr() if sparse else x
    return data
