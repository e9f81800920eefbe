"""Ranges to search: beside the defaults, the paper's, and what a user says."""

import math

import pytest

from mario.errors import MarioError
from mario.lab.tune.search_space import (
    Between,
    Choice,
    declared_ranges,
    grid_of,
    paper_grid,
    search_space,
    spread,
)
from mario.methods import REGISTRY

RATES = "mask_features_1+mask_features_2+drop_edges_1+drop_edges_2"


def test_all_ranges_that_stand_beside_the_defaults() -> None:
    space = search_space("mario")
    assert space == declared_ranges("mario")
    assert space["gamma"] == Choice((0.001, 0.01, 0.1, 0.5, 1.0))
    assert space["probe_lr"] == Choice((1e-1, 1e-2, 1e-3, 1e-4))
    assert "warmup" not in space
    assert "probe_lr" not in search_space("erm"), "a supervised method is judged by its own head"


def test_only_given_and_told() -> None:
    assert list(search_space("mario", only=["lr", "gamma"])) == ["lr", "gamma"]
    assert "lr" not in search_space("mario", given={"lr": "0.1"})
    assert search_space("mario", only=["lr"], search={"warmup": "0,100"}) == {
        "lr": Choice((1e-1, 1e-2, 1e-3, 1e-4, 1e-5)),
        "warmup": Choice((0, 100)),
    }
    assert search_space("mario", only=["lr"], search={"lr": "1e-4:1e-1:log"}) == {"lr": Between(1e-4, 1e-1, True)}
    assert search_space("mario", only=["clusters"], search={"clusters": "10:300"}) == {"clusters": Between(10, 300)}
    assert search_space("grace", only=["batch_norm"], search={"batch_norm": "yes,no,yes"}) == {
        "batch_norm": Choice((True, False))
    }


def test_settings_that_share_a_value() -> None:
    space = search_space("grace", search={"drop_edges_1+drop_edges_2": "0.1,0.2"})
    assert space["drop_edges_1+drop_edges_2"] == Choice((0.1, 0.2))
    assert not {"drop_edges_1", "drop_edges_2"} & set(space)
    assert spread({"drop_edges_1+drop_edges_2": 0.1}) == {"drop_edges_1": 0.1, "drop_edges_2": 0.1}


def test_the_grid_of_the_paper() -> None:
    # The sentences of the appendix and of the sensitivity analysis, by hand.
    assert paper_grid("mario") == {
        "gamma": Choice((0.001, 0.01, 0.1, 0.5, 1.0)),
        "clusters": Choice((10, 50, 100, 200, 300)),
    }
    assert (
        paper_grid("bgrl")
        == paper_grid("grace")
        == {
            "epochs": Choice((50, 100, 200, 500, 600)),
            "lr": Choice((1e-1, 1e-2, 1e-3, 1e-4, 1e-5)),
            RATES: Choice((0.1, 0.2, 0.3, 0.4, 0.5, 0.6)),
        }
    )
    assert paper_grid("graphmae")["mask_rate"] == Choice((0.25, 0.5, 0.75))
    assert set(paper_grid("dgi")) == {"epochs", "lr"}
    assert paper_grid("costa+mario") == paper_grid("mario")
    assert paper_grid("erm") == {}
    assert paper_grid("erm", "graph") == {"epochs": Choice((50, 100, 200)), "lr": Choice((1e-2, 5e-3, 1e-3, 1e-4))}
    assert math.prod(map(len, grid_of(paper_grid("grace")).values())) == 150


@pytest.mark.parametrize("method", sorted(REGISTRY))
def test_every_range_holds_values_that_its_method_takes(method: str) -> None:
    cls = REGISTRY[method]
    own = {field.name for field in cls.fields()}
    for space in (declared_ranges(method), paper_grid(method), paper_grid(method, "graph")):
        for key, values in grid_of_each(space).items():
            for value in values:
                chosen = {name: v for name, v in spread({key: value}).items() if name in own}
                if method not in ("dgi", "mvgrl") or not {"batch_norm", "last_activation"} & chosen.keys():
                    cls.from_settings(chosen)


def grid_of_each(space: dict) -> dict:
    return {key: values for name in space for key, values in grid_of({name: space[name]}).items()}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"search": {"gama": "1,2"}}, "mario has no setting 'gama'; did you mean 'gamma'"),
        ({"only": ["gama"]}, "mario has no setting 'gama'"),
        ({"only": ["warmup"]}, "warmup has no search range: give one, such as --search warmup="),
        ({"only": ["lr"], "given": {"lr": 0.1}}, "lr is fixed by --set"),
        ({"search": {"lr": "fast,slow"}}, "--search lr=fast,slow: lr=fast: that is not a number"),
        ({"search": {"lr": "-1,1"}}, "lr must be at least 0.0, got -1.0"),
        ({"search": {"lr": "1:0.1"}}, "1.0 is not below 0.1"),
        ({"search": {"lr": "0:0.1:log"}}, "must start above 0"),
        ({"search": {"lr": "0.1:1:sqrt"}}, "LOW:HIGH or LOW:HIGH:log"),
        ({"search": {"encoder": "gcn:gin"}}, "encoder is not a number"),
        ({"search": {"encoder": "gcn,mlp"}}, "encoder must be one of gcn"),
        ({"search": {"lr": " , "}}, "needs values"),
        ({"search": {"milestones": "1,2"}}, "milestones is a list"),
        ({"search": {"checkpoints": "1,20"}}, "checkpoints cannot be searched"),
        ({"search": {"drop_edges_1+drop_edges_2": "0.1", "drop_edges_1": "0.2"}}, "drop_edges_1 is searched twice"),
        ({"given": dict.fromkeys(declared_ranges("mario"), 1)}, "no setting of mario is left to search"),
    ],
)
def test_what_cannot_be_searched_is_named(asked: dict, message: str) -> None:
    with pytest.raises(MarioError, match=message):
        search_space("mario", **asked)


def test_what_is_no_grid() -> None:
    with pytest.raises(MarioError, match="the paper states no grid for irm"):
        search_space("irm", grid=True)
    with pytest.raises(MarioError, match="a grid needs values: --search lr=a,b,c"):
        grid_of({"lr": Between(0.1, 1.0)})
    with pytest.raises(MarioError, match="points: name fewer settings with --only"):
        grid_of(declared_ranges("mario"))
