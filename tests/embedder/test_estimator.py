"""`mario.Embedder` in scikit-learn's manners."""

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import mario
from embedder.graphs import shifting
from mario.embedder import ModelFolder, embed
from mario.errors import MarioError

TINY: dict[str, Any] = {"method": "grace", "steps": 1, "settings": {"hidden_channels": 4}, "device": "cpu"}


def tiny(**more: Any) -> mario.Embedder:
    return mario.Embedder(**{**TINY, "rule": "gate", **more})


@parametrize_with_checks([tiny(n_neighbors=3)])  # type: ignore[untyped-decorator]
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def test_a_graph() -> None:
    data = shifting()
    embedder = mario.Embedder(**TINY)
    z = embedder.fit_transform(data)
    assert z.dtype == np.float32
    assert z.shape == (300, len(embedder.get_feature_names_out()))
    assert embedder.about_.rule == "ood_val"
    assert embedder.classes_.tolist() == ["0", "1"]
    chances = embedder.predict_proba(data)
    np.testing.assert_allclose(chances.sum(1), 1)
    assert embedder.predict(data).tolist() == embedder.classes_[chances.argmax(1)].tolist()
    assert np.array_equal(z, embedder.transform(data))
    assert np.array_equal(z, clone(embedder).fit(data).transform(data))


def test_labels_of_a_graph_can_be_given() -> None:
    data = shifting(labels=False)
    names = np.array(["cat", "dog"])[(data.x[:, 0] > 0).long().numpy()].astype(object)
    names[:200] = None
    embedder = tiny().fit(data, names)
    assert embedder.classes_.tolist() == ["cat", "dog"]
    assert embedder.about_.labeled == 100
    assert embedder.score(data, np.array(["cat", "dog"])[(data.x[:, 0] > 0).long().numpy()]) > 0.8
    assert "y" not in data
    with pytest.raises(MarioError, match="y has 2 labels for 300 rows"):
        tiny().fit(data, [0, 1])


def test_without_labels_nothing_is_predicted() -> None:
    data = shifting(labels=False)
    embedder = tiny()
    assert hasattr(embedder, "predict")
    with pytest.raises(NotFittedError):
        embedder.predict(data)
    embedder.fit(data)
    assert not hasattr(embedder, "predict")
    assert not hasattr(embedder, "classes_")
    assert not hasattr(embedder.fit(data, np.linspace(0, 1, 300)), "predict_proba")


def test_a_pipeline_of_a_graph() -> None:
    data = shifting()
    model = make_pipeline(tiny(), LogisticRegression()).fit(data, data.y.numpy())
    assert model.score(data, data.y.numpy()) > 0.6


def test_arrays_in_a_pipeline_with_names() -> None:
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = make_pipeline(StandardScaler(), mario.Embedder(**TINY)).set_output(transform="pandas").fit(X, y)
    assert model.score(X, y) > 0.9
    assert model[-1].classes_.tolist() == [0, 1, 2]
    z = model.transform(X)
    assert list(z.columns) == model.get_feature_names_out().tolist()
    assert z.index.equals(X.index)


def test_a_row_of_an_array_does_not_depend_on_the_others() -> None:
    X, _ = load_iris(return_X_y=True)
    for graph in ("knn", "none"):
        embedder = tiny(graph=graph).fit(X[::2])
        whole = embedder.transform(X[1::2])
        np.testing.assert_allclose(whole[7:9], embedder.transform(X[15:19:2]), atol=1e-6)
    with pytest.raises(MarioError, match="unknown graph 'ring'"):
        tiny(graph="ring").fit(X)


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    label = generator.integers(0, 2, rows)
    return pd.DataFrame(
        {
            "user_id": [f"u{i}" for i in range(rows)],
            "label": np.array(["no", "yes"])[label],
            "country": np.array(["PE", "FI"])[np.arange(rows) % 2],
            "visits": np.where(generator.random(rows) < 0.1, np.nan, label * 3 + generator.standard_normal(rows)),
            "plan": np.array(["free", "paid"])[label ^ (generator.random(rows) < 0.2)],
            "note": [f"asked for {word} again and again" for word in np.array(["help", "more"])[label]],
        }
    )


def test_tables_with_texts_have_labels_and_domains() -> None:
    old, new = table(80), table(40, seed=1)
    embedder = mario.Embedder(**TINY).fit(old)
    assert embedder.about_.rule == "leave_domain_out"
    assert embedder.about_.graph.domains == ("FI", "PE")
    assert embedder.classes_.tolist() == ["no", "yes"]
    assert embedder.score(new.drop(columns="label"), new["label"]) > 0.9
    with pytest.raises(MarioError, match="no column 'visits'"):
        embedder.transform(new.drop(columns=["label", "visits", "country"]).assign(visit=1))
    with pytest.raises(MarioError, match="fitted on a table"):
        embedder.transform(np.zeros((3, 4)))


@pytest.mark.parametrize("kind", ["graph", "array", "table"])
def test_save_load_and_pickle(kind: str, tmp_path: Path) -> None:
    X: Any = {"graph": shifting(), "array": load_iris(return_X_y=True), "table": table(40)}[kind]
    X, y = X if kind == "array" else (X, None)
    embedder = tiny(n_neighbors=4).fit(X, y)
    embedder.save(tmp_path / "model")
    loaded = mario.Embedder.load(tmp_path / "model")
    loaded.save(tmp_path / "again")
    for other in (loaded, mario.Embedder.load(tmp_path / "again"), pickle.loads(pickle.dumps(embedder))):
        assert other.get_params() == embedder.get_params()
        assert np.array_equal(other.transform(X), embedder.transform(X))
        assert np.array_equal(other.predict(X), embedder.predict(X))
        assert other.get_feature_names_out().tolist() == embedder.get_feature_names_out().tolist()
        assert other.n_features_in_ == embedder.n_features_in_


def test_a_model_folder_of_the_command_line_is_an_embedder(tmp_path: Path) -> None:
    data = shifting()
    tiny().fit(data).save(tmp_path / "model")
    (tmp_path / "model" / "estimator.json").unlink()
    embedder = mario.Embedder.load(tmp_path / "model")
    z = embed(ModelFolder.read(tmp_path / "model"), data).dense()
    assert torch.equal(torch.from_numpy(embedder.transform(data)), z)
    assert embedder.predict(data).tolist() <= ["1"] * 300


def test_a_damaged_state_is_told(tmp_path: Path) -> None:
    tiny().fit(shifting()).save(tmp_path / "model")
    state = tmp_path / "model" / "estimator.json"
    for broken in ("[]", '{"format": 2}', '{"format": 1, "params": {"x": 1}, "rows": false}', "{"):
        state.write_text(broken)
        with pytest.raises(MarioError, match=r"estimator\.json"):
            mario.Embedder.load(tmp_path / "model")


def test_wrong_arguments() -> None:
    with pytest.raises(MarioError, match="steps is given as an argument and in settings"):
        mario.Embedder(steps=1, settings={"steps": 2}).fit(shifting())
    with pytest.raises(MarioError, match="settings must be a dict"):
        mario.Embedder(settings="lr=1").fit(shifting())
    with pytest.raises(MarioError, match="fitted on a graph; X must be one too, got ndarray"):
        tiny().fit(shifting()).transform(np.zeros((3, 4)))
    with pytest.raises(MarioError, match="fitted on an array"):
        tiny().fit(np.eye(5)).transform(shifting())


def test_partial_fit_of_a_graph(tmp_path: Path) -> None:
    old, new = shifting(), shifting(seed=1)
    embedder = tiny(steps=3, channels="graph").partial_fit(old)
    before = embedder.transform(old)
    assert embedder.partial_fit(new) is embedder
    after = embedder.transform(old)
    assert before.shape == after.shape
    assert not np.array_equal(before, after)
    assert np.mean(np.sum(before * after, 1) / np.linalg.norm(before, axis=1) / np.linalg.norm(after, axis=1)) > 0.9
    assert len(embedder.about_.history) == 1
    embedder.save(tmp_path / "model")
    loaded = mario.Embedder.load(tmp_path / "model")
    assert np.array_equal(loaded.transform(new), embedder.transform(new))
    assert loaded.partial_fit(old, old.y.numpy()).classes_.tolist() == ["0", "1"]
    assert len(loaded.about_.history) == 2
    with pytest.raises(MarioError, match="X must be one too, got ndarray"):
        loaded.partial_fit(np.eye(3))


def test_partial_fit_of_arrays_and_tables() -> None:
    X, y = load_iris(return_X_y=True)
    embedder = tiny().partial_fit(X[::2], y[::2]).partial_fit(X[1::2], y[1::2])
    assert embedder.classes_.tolist() == [0, 1, 2]
    assert embedder.transform(X).shape[0] == 150
    assert pickle.loads(pickle.dumps(embedder)).score(X, y) > 0.8
    frame = tiny().partial_fit(table(40)).partial_fit(table(40, seed=1))
    assert frame.classes_.tolist() == ["no", "yes"]
    assert frame.transform(table(10, seed=2)).shape[0] == 10
