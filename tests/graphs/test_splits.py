import random
import time

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from mario.datasets import REGISTRY
from mario.errors import MarioError
from mario.graphs import SplitRule, check_graph, split_graph
from mario.graphs.quantities import word_counts
from mario.graphs.rules import PARTS, SHIFTS
from mario.graphs.splits import (
    OOD_TEST,
    OOD_VAL,
    TRAIN,
    concept_picks,
    concept_split,
    covariate_split,
    cut_at_changes,
    no_shift_split,
)


def slow_cuts(sorted_ids: list[int], cuts: list[int]) -> list[int]:
    """GOOD's walk: from each cut on, the next node of another domain than its predecessor starts a new part."""
    part, starts = 0, [len(sorted_ids)] * len(cuts)
    for i in range(1, len(sorted_ids)):
        if part < len(cuts) and i >= cuts[part] and sorted_ids[i] != sorted_ids[i - 1]:
            starts[part] = i
            part += 1
    return starts


def slow_picks(domain_id: list[int], y: list[int], rule: SplitRule, draws: list[list[float]]) -> list[int]:
    """The five picks, one domain and one node at a time, as the reference page tells them."""
    mean = sum(y) / len(y)
    domains = sorted(set(domain_id))
    sign, before = {}, 0
    for domain in domains:
        sign[domain] = 1 if before < len(y) / 2 else -1
        before += domain_id.count(domain)
    pick = [-1] * len(y)
    for k in range(5):
        for domain in domains:
            left = [i for i in range(len(y)) if domain_id[i] == domain and pick[i] == -1]
            if k == 4:
                for i in left:
                    pick[i] = 4
                continue
            direction = sign[domain] * (-1 if k == 1 else 1)
            kinds: dict[bool, list[int]] = {True: [], False: []}
            for i in left:
                kinds[direction * (y[i] - mean) > 0].append(i)
            taken: dict[bool, list[int]] = {True: [], False: []}
            for kind, nodes in kinds.items():
                chance = rule.pick[k] * (rule.bias[k] if kind else 1 - rule.bias[k])
                taken[kind] = [i for i in nodes if draws[k][i] < chance]
            for kind in (True, False):
                if not taken[kind] and taken[not kind] and kinds[kind]:
                    taken[kind].append(min(kinds[kind], key=lambda i: draws[k][i]))
                    break
            for i in taken[True] + taken[False]:
                pick[i] = k
    return pick


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", ["good-cora", "good-twitch", "good-webkb"])
def test_concept_picks_equal_the_slow_reference(name: str, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    domains, classes = (3, 2) if seed % 2 else (40, 7)
    domain_id = torch.randint(domains, (200,), generator=generator)
    domain_id = domain_id.unique(return_inverse=True)[1]
    y = torch.randint(classes, (200,), generator=generator)
    draws = torch.rand(4, 200, dtype=torch.float64, generator=generator)
    rule = REGISTRY[name].rule
    fast = concept_picks(domain_id, y, rule, draws)
    assert fast.tolist() == slow_picks(domain_id.tolist(), y.tolist(), rule, draws.tolist())


def test_a_pick_that_took_one_kind_only_gets_one_more_of_the_other() -> None:
    # One domain; ȳ = 0.6, so that label 1 agrees. Pick 1 takes agreeing nodes below .4 × .95 = .38, others below .02.
    y = torch.tensor([1, 1, 1, 0, 0])
    draws = torch.full((4, 5), 0.999, dtype=torch.float64)
    draws[0] = torch.tensor([0.1, 0.5, 0.37, 0.8, 0.7])
    picks = concept_picks(torch.zeros(5, dtype=torch.int64), y, SplitRule(), draws)
    assert picks.tolist() == [0, 4, 0, 4, 0]


@pytest.mark.parametrize("seed", range(20))
def test_cuts_equal_the_slow_walk(seed: int) -> None:
    rng = random.Random(seed)
    ids = sorted(rng.choices(range(rng.choice([1, 2, 5, 30])), k=50))
    cuts = sorted(rng.sample(range(1, 50), rng.choice([1, 2, 9])))
    assert cut_at_changes(torch.tensor(ids), cuts) == slow_cuts(ids, cuts)


def test_cuts_by_hand() -> None:
    ids = torch.tensor([0, 0, 0, 1, 1, 2, 3, 3, 3, 4])
    assert cut_at_changes(ids, [6, 8]) == [6, 9]
    assert cut_at_changes(ids, [1, 2]) == [3, 5]
    assert cut_at_changes(ids, [9, 9]) == [9, 10]


@pytest.mark.parametrize("descending", [True, False])
def test_covariate_equals_the_slow_reference_up_to_the_shuffle(descending: bool) -> None:
    domain_id = torch.randint(25, (300,), generator=torch.Generator().manual_seed(1)).unique(return_inverse=True)[1]
    rule = SplitRule(descending=descending)
    split = covariate_split(domain_id, rule, torch.Generator().manual_seed(0))
    order = sorted(range(300), key=lambda i: (-1 if descending else 1) * int(domain_id[i]))
    first, second = slow_cuts([int(domain_id[i]) for i in order], [180, 240])
    assert set((split.part == OOD_VAL).nonzero().view(-1).tolist()) == set(order[first:second])
    assert set((split.part == OOD_TEST).nonzero().view(-1).tolist()) == set(order[second:])
    assert torch.bincount(split.part, minlength=5).tolist() == [first - 60, 30, 30, second - first, 300 - second]

    starts = slow_cuts([int(domain_id[i]) for i in order[:first]], [k * (first // 10) for k in range(1, 10)])
    for place, node in enumerate(order[:first]):
        expected = sum(place >= start for start in starts) if split.part[node] == TRAIN else -1
        assert int(split.env_id[node]) == expected


def test_held_out_domain_is_halved_and_every_other_is_an_environment() -> None:
    domain_id = torch.tensor([0, 1, 2] * 20)
    split = covariate_split(domain_id, SplitRule(), torch.Generator().manual_seed(0), held_out=1)
    assert set(domain_id[split.part == OOD_VAL].tolist()) == set(domain_id[split.part == OOD_TEST].tolist()) == {1}
    assert torch.bincount(split.part).tolist() == [28, 6, 6, 10, 10]
    train = split.part == TRAIN
    assert torch.equal(split.env_id[train], domain_id[train] // 2)
    assert (split.env_id[~train] == -1).all()


def test_concept_pick_sizes_follow_the_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    count = 200_000
    domain_id, y = torch.randint(2, (2, count), generator=generator)
    split = concept_split(domain_id, y, SplitRule(), generator)
    # Half of the nodes agree with the training sign. Shares left after each pick, by hand from pick and bias:
    agree, other = 1 - 0.4 * 0.95, 1 - 0.4 * 0.05
    test = (agree * 0.6 * 0.05 + other * 0.6 * 0.95) / 2
    agree, other = agree * (1 - 0.6 * 0.05), other * (1 - 0.6 * 0.95)
    agree, other = agree * (1 - 0.5 * 0.9), other * (1 - 0.5 * 0.1)
    agree, other = agree * (1 - 0.85), other * (1 - 0.15)
    val = (agree + other) / 2
    share = torch.bincount(split.part, minlength=5) / count
    train = 1 - test - val
    expected = torch.tensor([0.7 * train, 0.15 * train, 0.15 * train, val, test])
    assert torch.allclose(share, expected, atol=0.005)


def test_no_shift_sizes_by_hand() -> None:
    split = no_shift_split(100, SplitRule(), torch.Generator().manual_seed(0))
    assert torch.bincount(split.part).tolist() == [60, 10, 10, 10, 10]
    split = no_shift_split(100, SplitRule(control=(0.4, 0.3, 0.3)), torch.Generator().manual_seed(0))
    assert torch.bincount(split.part).tolist() == [40, 15, 15, 15, 15]


def own_graph(num_nodes: int = 400) -> Data:
    generator = torch.Generator().manual_seed(3)
    return Data(
        x=torch.rand(num_nodes, 5, generator=generator),
        edge_index=torch.randint(num_nodes, (2, 4 * num_nodes), generator=generator),
        y=torch.randint(4, (num_nodes,), generator=generator),
        year=torch.randint(1990, 2020, (num_nodes,), generator=generator),
    )


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("domain", ["word", "degree", "year"])
def test_any_graph_can_be_split(domain: str, shift: str) -> None:
    data = own_graph()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    shifted = split_graph(data, domain=domain, shift=shift, split_seed=5)
    check_graph(shifted)
    assert sum(int(shifted[f"{part}_mask"].sum()) for part in PARTS) == 400
    assert torch.equal(torch.get_rng_state(), before)
    assert "train_mask" not in data
    again = split_graph(data, domain=domain, shift=shift, split_seed=5)
    other = split_graph(data, domain=domain, shift=shift, split_seed=6)
    assert all(torch.equal(shifted[f"{part}_mask"], again[f"{part}_mask"]) for part in PARTS)
    assert not torch.equal(shifted.train_mask, other.train_mask)
    assert (shifted.num_classes, shifted.metric, shifted.faults) == (4, "accuracy", [])


def test_domain_values_may_be_names_numbers_or_a_tensor() -> None:
    data = own_graph()
    names = [f"group {year}" for year in data.year.tolist()]
    for values in (data.year, data.year.numpy(), data.year.float(), names, np.array(names)):
        given = split_graph(data, domain=values, shift="concept")
        assert torch.equal(given.domain_id, data.year - 1990)
        assert torch.equal(given.train_mask, split_graph(data, domain="year", shift="concept").train_mask)


def test_word_counts_of_sparse_and_dense_rows() -> None:
    x = torch.tensor([[1.0, 0, 1], [0, 0, 0], [1, 1, 1]])
    assert word_counts(x).tolist() == word_counts(x.to_sparse_csr()).tolist() == [2, 0, 3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"domain": "color"}, "unknown domain 'color'"),
        ({"domain": [1, 2]}, "for each of 400 nodes"),
        ({"domain": torch.full((400,), float("nan"))}, "NaN"),
        ({"domain": torch.zeros(400), "shift": "covariate"}, "leaves ood_val empty"),
        ({"domain": "year", "shift": "covariant"}, "did you mean 'covariate'"),
        ({"domain": "year", "setting": "both"}, "transductive, inductive"),
        ({"domain": "year", "split_seed": -1}, "split_seed"),
        ({"domain": "year", "split_seed": 0.5}, "split_seed"),
        (
            {"domain": "year", "shift": "covariate", "rule": SplitRule(held_out="1889")},
            "one of 1990, 1991",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(MarioError, match=message):
        split_graph(own_graph(), **arguments)  # type: ignore[arg-type]


def test_labels_are_needed() -> None:
    data = own_graph()
    del data.y
    with pytest.raises(MarioError, match=r"data\.y"):
        split_graph(data, domain="year")


@pytest.mark.parametrize("fields", [{"pick": (0.5,)}, {"cuts": (0.8, 0.6)}, {"covariate_id": 1.5}, {"environments": 0}])
def test_rules_out_of_range(fields: dict[str, object]) -> None:
    with pytest.raises(MarioError, match="SplitRule"):
        SplitRule(**fields)  # type: ignore[arg-type]


def test_a_split_of_coras_size_is_quick() -> None:
    data = own_graph(20_000)
    start = time.process_time()
    split_graph(data, domain="word", shift="concept")  # twenty thousand domains, the worst case
    assert time.process_time() - start < 0.5


@pytest.mark.parametrize("shift", SHIFTS)
def test_edge_weights_and_attributes_are_kept_and_checked(shift: str) -> None:
    ring = Data(x=torch.eye(100), edge_index=torch.arange(100).repeat(2, 1), y=torch.arange(100) % 2)
    ring.edge_weight, ring.edge_attr = torch.rand(100), torch.rand(100, 2)
    data = split_graph(ring, domain=torch.arange(100) // 10, shift=shift)
    assert data.edge_weight is ring.edge_weight
    assert data.edge_attr is ring.edge_attr
    ring.edge_weight = -ring.edge_weight
    with pytest.raises(MarioError, match="negative weights"):
        split_graph(ring, domain=torch.arange(100) // 10, shift=shift)
