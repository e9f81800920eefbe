"""Settings are checked when set, listed, changed together, copied and shown; `fit` shows progress."""

import copy

import pytest
import sklearn.base
import torch
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted
from torch_geometric.nn import GCN

import mario
from mario.errors import MarioError
from mario.methods import find
from mario.methods.registry import systems
from mario.views import DropEdges, MaskFeatures

from .tiny import tiny_graph

SMALL = {"hidden_channels": 8, "num_layers": 1, "epochs": 3, "steps_per_epoch": 2}


class TestValuesThatAreNotAllowed:
    def test_assigning_one_is_refused(self) -> None:
        model = mario.MARIO(tau=0.3)
        with pytest.raises(MarioError, match="tau must be at least 1e-06, got -1"):
            model.tau = -1
        assert model.tau == 0.3
        model.tau = 1
        assert isinstance(model.tau, float)

    def test_assigning_one_that_does_not_go_with_the_others_is_refused(self) -> None:
        model = mario.GRACE(gather=True)
        with pytest.raises(MarioError, match="anchors are for estimator=info_nce"):
            model.anchors = 10
        assert model.anchors == 0

    def test_set_params_changes_all_or_nothing(self) -> None:
        model = mario.MARIO()
        before = model.get_params()
        with pytest.raises(MarioError, match="tau must be at least"):
            model.set_params(gamma=0.5, tau=-1)
        with pytest.raises(MarioError, match="mario has no setting 'temperature'"):
            model.set_params(gamma=0.5, temperature=1)
        assert model.get_params() == before
        assert model.set_params(gamma=0.5, tau=0.1) is model
        assert (model.gamma, model.tau) == (0.5, 0.1)

    def test_set_params_may_change_two_that_go_together(self) -> None:
        model = mario.GRACE(anchors=10)
        model.set_params(anchors=0, gather=True)
        assert (model.anchors, model.gather) == (0, True)


def test_settings_changed_between_two_fits_leave_nothing_behind() -> None:
    data, model = tiny_graph(), mario.MARIO(**SMALL, clusters=3)
    model.fit(data)
    z = model.set_params(conditional=False).fit(data).transform(data)
    fresh = mario.MARIO(**SMALL, clusters=3, conditional=False).fit(data)
    assert model.state_dict().keys() == fresh.state_dict().keys()
    assert torch.equal(z, fresh.transform(data))


@pytest.mark.parametrize("name", [*systems("node"), *systems("graph")])
def test_scikit_learn_clones_every_method(name: str) -> None:
    method = find(name)
    model = method(encoder=GCN(4, 8, 2), epochs=2, milestones=(1, 2))
    other = sklearn.base.clone(model)
    assert type(other) is method
    assert other.epochs == 2
    assert other.encoder is not model.encoder
    assert type(other.encoder) is GCN


def test_a_clone_has_views_and_is_not_fitted() -> None:
    model = mario.GRACE(**SMALL, views=(DropEdges(0.2), MaskFeatures(0.2))).fit(tiny_graph())
    check_is_fitted(model)
    other = sklearn.base.clone(model)
    assert [type(view) for view in other.views] == [DropEdges, MaskFeatures]
    with pytest.raises(NotFittedError):
        check_is_fitted(other)
    with pytest.raises(MarioError, match="not fitted"):
        other.transform(tiny_graph())


def test_tags_are_those_of_a_transformer_that_takes_no_matrix() -> None:
    tags = get_tags(mario.GRACE())
    assert tags.transformer_tags is not None
    assert not tags.input_tags.two_d_array
    assert "GRACE" in repr(make_pipeline(mario.GRACE()))


def test_a_copy_is_a_model_of_its_own() -> None:
    data, model = tiny_graph(), mario.GRACE(**SMALL, encoder=GCN(4, 8, 1)).fit(tiny_graph())
    other = copy.deepcopy(model)
    other.fit(data, seed=5)
    assert not torch.equal(other.transform(data), model.transform(data))


def test_the_representation_shows_what_was_set() -> None:
    assert repr(mario.GRACE(tau=0.2, encoder="gat")) == "GRACE(encoder='gat', tau=0.2)"
    assert repr(mario.GRACE(views=(DropEdges(0.2), MaskFeatures(0.3)))) == (
        "GRACE(views=(DropEdges(0.2), MaskFeatures(0.3)))"
    )
    assert repr(mario.GRACE(encoder=GCN(4, 8, num_layers=2))) == "GRACE(encoder=GCN(4, 8, num_layers=2))"


@pytest.mark.parametrize("name", [*systems("node"), *systems("graph")])
def test_help_explains_every_setting(name: str) -> None:
    method = find(name)
    text = method.__doc__ or ""
    assert text.count("Args:\n") == 1
    assert text.index("Args:") < text.index("Example:")
    for field in method.fields():
        assert f"    {field.name}: {field.metadata['help']} (default " in text


def test_fit_transform_is_fit_and_transform() -> None:
    data = tiny_graph()
    z = mario.GRACE(**SMALL).fit_transform(data, seed=3)
    assert torch.equal(z, mario.GRACE(**SMALL).fit(data, seed=3).transform(data))


class TestProgress:
    def test_the_callback_gets_every_epoch(self) -> None:
        seen = []
        mario.GRACE(**SMALL).fit(tiny_graph(), callback=seen.append)
        assert [epoch.number for epoch in seen] == [1, 2, 3]
        assert all(epoch.losses["loss"] > 0 for epoch in seen)

    def test_it_may_stop_the_training(self) -> None:
        data, seen = tiny_graph(), []

        def callback(epoch: mario.training.Epoch) -> bool:
            seen.append(epoch.number)
            return epoch.number == 2

        z = mario.GRACE(**SMALL).fit(data, callback=callback).transform(data)
        assert seen == [1, 2]
        assert torch.equal(z, mario.GRACE(**{**SMALL, "epochs": 2}).fit(data).transform(data))

    def test_what_it_raises_is_raised(self) -> None:
        def callback(epoch: mario.training.Epoch) -> None:
            raise KeyError("mine")

        with pytest.raises(KeyError, match="mine"):
            mario.GRACE(**SMALL).fit(tiny_graph(), callback=callback)

    def test_verbose_shows_epochs_and_loss_and_changes_no_bit(self, capsys: pytest.CaptureFixture[str]) -> None:
        data = tiny_graph()
        z = mario.GRACE(**SMALL).fit(data, verbose=True).transform(data)
        shown = capsys.readouterr()
        assert "3/3" in shown.err
        assert "loss" in shown.err
        assert not shown.out
        assert torch.equal(z, mario.GRACE(**SMALL).fit(data).transform(data))
        assert not capsys.readouterr().err, "quiet unless asked"
