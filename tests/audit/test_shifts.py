"""What shifts, on graphs of which the truth is known; benchmarks/audit_truth.py has the rates."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from audit.worlds import world
from mario.audit import against_new, between_domains
from mario.audit.shifts import Comparison
from mario.embedder import read_source
from mario.errors import MarioError


def between(data: Data, draws: int = 299) -> Comparison:
    found = between_domains(read_source(data), draws=draws)
    assert found is not None
    return found


def test_no_shift_is_no_shift() -> None:
    alarms = [between(world(seed, separate=seed % 2 == 0)).found for seed in range(10)]
    assert sum(alarms) <= 1


@pytest.mark.parametrize(("separate", "scheme"), [(True, "blocks"), (False, "nodes")])
def test_what_is_exchanged_follows_from_the_graph(separate: bool, scheme: str) -> None:
    found = between(world(separate=separate))
    assert found.scheme == scheme
    assert 8 <= found.units <= 60


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("column", ["age", "member", "color=green", "degree", "has a label", "homophily"])
def test_a_planted_shift_is_found_and_its_column_named(column: str, separate: bool) -> None:
    data = world(1, 480, separate=separate)
    there = data.domain_id == 1
    draws = torch.Generator().manual_seed(0)
    some = there & (torch.rand(480, generator=draws) < 0.6)
    inside = there.nonzero().view(-1)
    if column == "age":
        data.x[there, 0] += 1.5
    elif column == "member":
        data.x[some, 2] = 1
    elif column == "color=green":
        data.x[some, 3:] = torch.tensor([0.0, 0.0, 1.0])
    elif column == "degree":
        ends = inside[torch.randint(len(inside), (2, 900), generator=draws)]
        data.edge_index = torch.cat([data.edge_index, ends, ends.flip(0)], 1)
    elif column == "has a label":
        data.y[some] = -1
    else:
        data.y[inside] = data.y[inside[torch.randperm(len(inside), generator=draws)]]
    found = between(data)
    assert column in [one.column for one in found.shifts]
    first = max(found.columns, key=lambda one: one.z).column
    # More edges are at random, so they are less clustered, too.
    assert first == column or (column == "degree" and first in ("clustering", "homophily"))


def test_facts_and_effects_are_those_of_the_graph() -> None:
    data = world(2, 480)
    data.x[data.domain_id == 1, 0] += 2
    found = between(data)
    first, second = found.domains
    assert (first.name, first.nodes, second.nodes) == ("0", 240, 240)
    assert first.components >= 12
    age = next(one for one in found.columns if one.column == "age")
    mine = data.x[:, 0][data.domain_id == 1]
    assert age.mean == pytest.approx(float(mine.mean()), rel=1e-5)
    cut = float(age.event.split("≤")[1])
    assert age.share == pytest.approx(float((mine <= cut).float().mean()), abs=0.01)
    assert age.found
    assert age.deviations is not None
    assert age.deviations > 0.8
    assert [one.what for one in found.readings] == ["features", "structure", "neighbors"]
    assert found.readings[0].found
    assert found.readings[0].readable > 0.4


def test_a_new_graph_like_the_old_one_is_no_shift_and_another_is() -> None:
    source = read_source(world(3, 480))
    assert not against_new(source, world(4, 300), draws=299).found
    new = world(5, 300)
    new.x[:, 1] -= 2
    found = against_new(source, new, draws=299)
    assert [one.column for one in found.shifts] == ["income"]
    assert found.domains[1].beyond is not None
    assert found.domains[1].beyond > 0.15
    assert found.domains[0].beyond is None


def test_unseen_features_of_a_new_graph_are_listed() -> None:
    data, new = world(3, 480), world(4, 300)
    data.x[:, 5] = 0
    found = against_new(read_source(data), new, draws=99)
    ((name, share),) = found.unseen
    assert name == "color=green"
    assert share == pytest.approx(float(new.x[:, 5].mean()))


def test_labels_that_training_may_not_read_are_not_read() -> None:
    data = world(6, 480, 3)
    data.train_mask = (data.domain_id < 2) & (torch.arange(480) % 4 > 0)
    data.id_val_mask = (data.domain_id < 2) & ~data.train_mask
    data.ood_test_mask = data.domain_id == 2
    seen = between(data)
    changed = data.clone()
    changed.y[data.domain_id == 2] = 0
    assert between(changed) == seen


def test_sparse_and_dense_features_give_the_same() -> None:
    data = world(7)
    dense = between(data)
    data.x = data.x.to_sparse_csr()
    sparse = between(data)
    assert [(one.column, one.share) for one in dense.columns if one.kind != "feature"] == [
        (one.column, one.share) for one in sparse.columns if one.kind != "feature"
    ]
    assert {one.column: round(one.share, 6) for one in dense.columns} == {
        one.column: round(one.share, 6) for one in sparse.columns
    }


def test_small_and_missing_domains_are_left_out() -> None:
    data = world(8, 400, 3, separate=False)
    data.domain_id[data.domain_id == 2] = -1
    data.domain_id[:4] = 2
    found = between(data)
    assert [one.name for one in found.domains] == ["0", "1"]
    assert found.left_out == ("2",)
    data.domain_id[:] = 0
    assert between_domains(read_source(data)) is None


def test_many_domains_are_put_together() -> None:
    data = world(9, 800, 16)
    data.domain_names = [str(2000 + place) for place in range(16)]
    found = between(data, draws=99)
    assert len(found.domains) == 8
    assert found.domains[0].name == "2000 to 2001"


def test_odd_graphs_are_compared() -> None:
    alone = world(10)
    alone.edge_index = torch.zeros(2, 0, dtype=torch.long)
    assert not between(alone, draws=99).found
    flat = world(11)
    flat.x = torch.ones(240, 2)
    assert not between(flat, draws=99).found
    assert between(flat, draws=99).skipped == 2


def test_other_columns_are_refused() -> None:
    with pytest.raises(MarioError, match="the new graph has 2 features, and graph has 6"):
        against_new(read_source(world()), Data(x=torch.ones(20, 2), edge_index=torch.zeros(2, 0, dtype=torch.long)))


def test_the_same_seed_gives_the_same() -> None:
    data = world(12)
    assert between(data, draws=99) == between(data, draws=99)


def test_order_of_nodes_does_not_decide() -> None:
    data = world(13, 480)
    data.x[data.domain_id == 1, 0] += 1.5
    order = torch.from_numpy(np.random.default_rng(0).permutation(480))
    place = torch.empty_like(order)
    place[order] = torch.arange(480)
    other = data.clone()
    other.x, other.y, other.domain_id = data.x[order], data.y[order], data.domain_id[order]
    other.edge_index = place[data.edge_index]
    assert [one.column for one in between(other).shifts] == [one.column for one in between(data).shifts] == ["age"]
