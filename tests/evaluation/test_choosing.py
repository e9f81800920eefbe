"""select: which candidate, what to expect of it, and that no test label is read."""

import copy

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.evaluation import CONTROLS, LogisticProbe, Selection, rank_me
from mario.graphs import BlockMatrix


def shifted(seed: int = 0, nodes: int = 600) -> Data:
    """Four domains and two columns: the first tells the class everywhere, the second only in the domain it is from."""
    draws = torch.Generator().manual_seed(seed)
    domain, y = torch.arange(nodes) % 4, torch.randint(2, (nodes,), generator=draws)
    sign = torch.tensor([1.0, -1.0, 1.0, -1.0])[domain]
    noise = torch.randn(nodes, 2, generator=draws)
    x = torch.stack([2 * y - 1 + 0.8 * noise[:, 0], (2 * y - 1) * sign * 3 + 0.1 * noise[:, 1]], 1).float()
    part = torch.rand(nodes, generator=draws)
    inside = domain < 2
    masks = {
        "train_mask": inside & (part < 0.6),
        "id_val_mask": inside & (part >= 0.6) & (part < 0.8),
        "id_test_mask": inside & (part >= 0.8),
        "ood_val_mask": domain == 2,
        "ood_test_mask": domain == 3,
    }
    edges = torch.randint(nodes, (2, 3 * nodes), generator=draws)
    return Data(x=x, edge_index=edges, y=y, domain_id=domain, metric="accuracy", num_classes=2, **masks)


def candidates(data: Data) -> dict[str, torch.Tensor]:
    return {"holds": data.x[:, :1].clone(), "does not": data.x[:, 1:].clone()}


class TestSelect:
    @pytest.mark.parametrize("rule", ["ood_val", "leave_domain_out"])
    def test_chooses_what_holds_in_other_domains(self, rule: str) -> None:
        data = shifted()
        found = mario.select(candidates(data), data, rule=rule)
        assert found.name == "holds"
        assert found.candidate is not None
        low, high = found.interval
        assert low <= found.score <= high
        assert list(found.table.index) == ["holds", "does not"]

    def test_leaving_a_domain_out_is_what_it_says(self) -> None:
        data = shifted()
        found = mario.select(candidates(data), data, rule="leave_domain_out", probe=LogisticProbe(grid=(1.0,)))
        labeled = (data.train_mask | data.id_val_mask).numpy()
        x, y, domain = data.x[:, :1].double().numpy(), data.y.numpy(), data.domain_id.numpy()
        scores = []
        for d in (0, 1):
            model = LogisticRegression(C=1.0, tol=1e-10).fit(
                *(a[data.train_mask.numpy() & (domain != d)] for a in (x, y))
            )
            held = labeled & (domain == d)
            scores.append(float((model.predict(x[held]) == y[held]).mean()))
        assert found.score == pytest.approx(np.mean(scores), abs=1e-9)

    @pytest.mark.parametrize("rule", ["ood_val", "leave_domain_out", "id_val"])
    def test_no_test_label_is_read(self, rule: str) -> None:
        data = shifted()
        poisoned = copy.copy(data)
        hidden = data.id_test_mask | data.ood_test_mask
        poisoned.y = torch.where(hidden, 1 - data.y, data.y)
        tables = [mario.select(candidates(data), given, rule=rule).table for given in (data, poisoned)]
        assert tables[0].equals(tables[1])

    def test_validation_labels_of_other_domains_are_read_by_ood_val_only(self) -> None:
        data = shifted()
        poisoned = copy.copy(data)
        poisoned.y = torch.where(data.ood_val_mask, 1 - data.y, data.y)
        for rule in ("leave_domain_out", "id_val"):
            tables = [mario.select(candidates(data), given, rule=rule).table for given in (data, poisoned)]
            assert tables[0].equals(tables[1])

    def test_the_rule_follows_from_the_labels(self) -> None:
        data = shifted()
        assert mario.select(candidates(data), data).rule == "ood_val"
        data.ood_val_mask = None
        assert mario.select(candidates(data), data).rule == "leave_domain_out"
        one = copy.copy(data)
        one.domain_id = torch.zeros_like(data.domain_id)
        assert mario.select(candidates(data), one).rule == "id_val"

    def test_without_labels_the_gate_chooses(self) -> None:
        data = shifted()
        bare = Data(x=data.x, edge_index=data.edge_index, domain_id=data.domain_id)
        small = {"hidden_channels": 4, "num_layers": 1, "epochs": 1, "steps_per_epoch": 1}
        models = [mario.GRACE(**small).fit(bare), mario.Steady(mario.GRACE(**small)).fit(bare)]
        found = mario.select(models, bare)
        assert (found.name, found.rule, found.score, found.interval) == ("grace+steady", "gate", None, None)
        assert found.candidate is models[1]
        assert list(found.table.index) == ["grace+steady", "grace"]
        with pytest.raises(MarioError, match="add a steady candidate"):
            mario.select(models[:1], bare)

    def test_blocks_and_models_are_candidates(self) -> None:
        data = shifted()
        models = {"raw": mario.RawFeatures(epochs=1).fit(data), "blocks": BlockMatrix.of({"x": data.x})}
        table = mario.select(models, data).table
        assert table.loc["raw", "score"] == table.loc["blocks", "score"]

    def test_collapse_is_an_alarm_and_does_not_choose(self) -> None:
        data = shifted()
        flat = {"flat": data.x[:, :1].repeat(1, 5), "wide": torch.randn(600, 5)}
        found = mario.select(flat, data)
        assert found.name == "flat"
        assert bool(found.table.loc["flat", "collapsed"])
        assert not bool(found.table.loc["wide", "collapsed"])

    @pytest.mark.parametrize(
        ("break_it", "message"),
        [
            (lambda d: ({}, d, None), "no candidate"),
            (lambda d: ([d.x[:5]], d, None), "5 rows for 600"),
            (lambda d: (["x"], d, None), "fitted method or its embeddings"),
            (lambda d: ([d.x], d, "best"), "unknown rule"),
            (lambda d: ([mario.ERM()], d, None), "learns from labels"),
            (lambda d: ([d.x], Data(x=d.x, edge_index=d.edge_index), "ood_val"), "rule='gate'"),
        ],
    )
    def test_bad_input_is_one_error(self, break_it, message: str) -> None:
        given, data, rule = break_it(shifted())
        with pytest.raises(MarioError, match=message):
            mario.select(given, data, rule=rule)

    def test_labels_of_one_domain_promise_nothing(self) -> None:
        data = shifted()
        data.train_mask = data.train_mask & (data.domain_id == 0)
        data.id_val_mask = data.id_val_mask & (data.domain_id == 0)
        with pytest.raises(MarioError, match="no promise"):
            mario.select(candidates(data), data, rule="leave_domain_out")


class TestControls:
    def test_stand_beside_the_scores(self) -> None:
        data = shifted()
        model = mario.GRACE(hidden_channels=4, num_layers=1, epochs=1, steps_per_epoch=1).fit(data)
        found = mario.evaluate(model, data, probe=LogisticProbe(), controls=True)
        assert list(found["controls"]) == list(CONTROLS)
        alone = mario.evaluate(mario.RawFeatures(epochs=1).fit(data), data, probe=LogisticProbe())
        assert found["controls"]["raw-features"] == alone
        plain = mario.evaluate(model, data, probe=LogisticProbe())
        assert {key: value for key, value in found.items() if key != "controls"} == plain

    def test_a_control_that_is_better_is_warned_about_where_the_domain_can_be_read(self) -> None:
        data = shifted()
        data.x[:, 1] = 0.0
        model = mario.RawFeatures(epochs=1).fit(data)

        class Domains(mario.RawFeatures):
            def embed_nodes(self, data, generator=None):
                return torch.nn.functional.one_hot(torch.arange(600) % 4, 4).float()

            def blocks(self, data):
                return BlockMatrix.of({"graph": self.embed_nodes(data)})

        beaten = Domains(epochs=1).fit(data)
        with pytest.warns(UserWarning, match=r"% on ood_val and .*readability 1\.00.*mario\.Steady"):
            mario.evaluate(beaten, data, probe=LogisticProbe(), controls=True)
        with_warnings = mario.evaluate(model, data, probe=LogisticProbe(), controls=True)
        assert with_warnings["controls"]["raw-features"]["ood_val"] == with_warnings["ood_val"]


def test_rank_me_is_the_effective_rank() -> None:
    z = torch.diag(torch.tensor([3.0, 1.0]))
    p = np.array([0.75, 0.25])
    assert rank_me(z) == pytest.approx(float(np.exp(-(p * np.log(p)).sum())))
    assert rank_me(torch.zeros(3, 2)) == 0.0


def test_selection_is_public() -> None:
    assert mario.evaluation.Selection is Selection
