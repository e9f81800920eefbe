"""What scores promise, and what an audit makes of them."""

import json
import math

import pytest
import torch

from audit.worlds import world
from mario.audit import audit_graph, verdict_of
from mario.audit.scores import promised
from mario.audit.stability import dropped
from mario.embedder import read_source
from mario.embedder.clock import Clock

QUICK = {"steps": 2, "hidden_channels": 8, "method": "grace"}


def test_the_promise_is_a_draw_from_the_domains() -> None:
    scores = [0.60, 0.70, 0.65, 0.75]
    found = promised({"only": dict(zip("abcd", scores, strict=True))})
    assert found.score == pytest.approx(0.675)
    spread = math.sqrt(sum((one - 0.675) ** 2 for one in scores) / 3)
    assert found.half == pytest.approx(3.1824 * spread * math.sqrt(1.25), rel=1e-4)  # Student's t, 3 degrees
    assert (found.kind, found.domains) == ("domain", 4)


def test_what_choosing_gained_is_no_part_of_the_promise() -> None:
    lucky = {
        "a": {"p": 0.9, "q": 0.5, "r": 0.5},
        "b": {"p": 0.5, "q": 0.9, "r": 0.5},
        "c": {"p": 0.5, "q": 0.5, "r": 0.9},
    }
    found = promised(lucky)
    assert found.score == pytest.approx(0.5)  # each is best only where it is scored
    assert found.low == found.high == pytest.approx(0.5)


@pytest.mark.parametrize("domains", [3, 5])
def test_the_promise_holds_for_domains_that_are_drawn_alike(domains: int) -> None:
    draws = torch.Generator().manual_seed(domains)
    held = 0
    for _ in range(300):
        base = 0.7 + 0.05 * torch.randn(domains + 1, generator=draws)
        table = {
            name: (base + 0.02 * torch.randn(domains + 1, generator=draws)).tolist() for name in ("a", "b", "c", "d")
        }
        found = promised({name: dict(enumerate(scores[:-1])) for name, scores in table.items()})  # type: ignore[misc]
        chosen = max(table.values(), key=lambda scores: sum(scores[:-1]))
        assert found.low is not None
        assert found.high is not None
        held += found.low <= chosen[-1] <= found.high
    assert held >= 0.92 * 300


def test_without_two_domains_there_is_no_promise() -> None:
    assert promised({}).kind == "none"
    assert promised({"a": {"p": 0.9}}).kind == "none"


def test_an_audit_scores_promises_and_asks_each_node() -> None:
    data = world(0, 480, 4)
    found = audit_graph(read_source(data), read_source(world(1, 300)), given=QUICK)
    assert found.scores is not None
    assert found.stability is not None
    names = [one.name for one in found.scores.candidates]
    assert {"raw-features", "hops", "random-init", "grace", "grace + x, gated"} <= set(names)
    assert found.scores.rule == "leave_domain_out"
    assert [part.domain for part in found.scores.candidate().parts] == ["0", "1", "2", "3"]
    assert all(part.nodes == 120 for part in found.scores.candidate().parts)
    assert found.scores.promise.domains == 4
    assert len(found.stability.nodes) == 480
    assert len(found.stability.new) == 300
    assert all(0 <= share <= 1 for share in found.stability.new)
    assert "on a new region" in verdict_of(found)[0]
    assert len(verdict_of(found)) == 3
    told = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert told["scores"]["promise"]["domains"] == 4
    assert told["stability"]["new"]["firm"] > 0.5


def test_validation_domains_are_left_out_too_and_test_labels_are_not_read() -> None:
    data = world(8, 480, 4)
    fifth = torch.arange(480) % 5 == 0
    data.train_mask, data.id_val_mask = (data.domain_id < 2) & ~fifth, (data.domain_id < 2) & fifth
    data.ood_val_mask, data.ood_test_mask = data.domain_id == 2, data.domain_id == 3
    found = audit_graph(read_source(data), given=QUICK)
    assert found.scores is not None
    assert [part.domain for part in found.scores.candidate().parts] == ["0", "1", "2"]
    other = data.clone()
    other.y[data.ood_test_mask] = 0
    assert audit_graph(read_source(other), given=QUICK).scores == found.scores


def test_labels_of_one_domain_promise_nothing() -> None:
    data = world(2, 300, 3)
    data.y[data.domain_id > 0] = -1
    found = audit_graph(read_source(data), given=QUICK)
    assert found.scores is not None
    assert found.scores.promise.kind == "same"
    assert "labels of one region only, so no promise about another can be made" in verdict_of(found)[0]


def test_without_labels_embeddings_are_asked() -> None:
    data = world(3, 300, 3)
    del data.y
    found = audit_graph(read_source(data), given=QUICK)
    assert found.scores is not None
    assert found.stability is not None
    assert found.scores.promise.kind == "none"
    assert found.stability.kind == "likeness"
    assert "no score can be promised" in verdict_of(found)[0]


def test_without_domains_nothing_is_compared() -> None:
    data = world(4, 200)
    del data.domain_id
    found = audit_graph(read_source(data), training=False)
    assert found.between is None
    assert verdict_of(found) == [
        "No two domains are known, so nothing can be compared: name a column with --domain, or add a graph."
    ]


def test_features_that_suffice_are_advised() -> None:
    data = world(5, 480, 4)
    data.x[:, 0] += 8 * data.y
    found = audit_graph(read_source(data), given=QUICK)
    assert found.scores is not None
    assert found.scores.chosen.startswith("raw-features")
    assert verdict_of(found)[0].startswith("Use the features alone: expect 100")


def test_a_budget_shortens_an_audit() -> None:
    clock = Clock()
    found = audit_graph(read_source(world(6, 480, 4)), given={"steps": 2_000, "hidden_channels": 16}, budget=6.0)
    assert found.scores is not None
    assert clock.spent() < 30
    assert sum(found.scores.trainings.values()) < 6_000


def test_both_directions_of_an_edge_are_dropped_together() -> None:
    data = world(7, 300)
    less = dropped(data, torch.Generator().manual_seed(0))
    kept = {tuple(pair) for pair in less.edge_index.T.tolist()}
    assert {(target, source) for source, target in kept} == kept
    assert less.edge_index.size(1) / data.edge_index.size(1) == pytest.approx(0.8, abs=0.05)
