"""What choosing without test labels costs: the regret of each rule of `mario.select` in the study on steady embeddings.

    python -m benchmarks.regret --runs FOLDER [--records docs/report/select.jsonl] [--columns ...]

The protocol is docs/protocol-steady.md. FOLDER has runs of `mario reproduce steady --out FOLDER`. For every column and
pair of seeds whose runs of grace and mario are there, the candidates are raw-features, hops, grace and mario, each as
it is and steady, all at the last checkpoint. A rule chooses one; its regret is the best candidate's score on
``ood_test`` minus that of its choice. Pairs that the records have are not repeated; at the end the table is printed.
"""

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

import mario
from mario.errors import MarioError
from mario.evaluation import LogisticProbe, evaluate
from mario.lab.presets import split_settings
from mario.lab.runs.execute import load_data
from mario.lab.spec import RunSpec
from mario.lab.studies.read import find_study
from mario.methods import Method, load, steady_of

HOSTS = ("raw-features", "hops", "grace", "mario")
GATE = tuple(f"{host}+steady" for host in ("mario", "grace", "hops", "raw-features"))
RULES = ("ood_val", "leave_domain_out", "id_val", "gate")


def specs(columns: list[str]) -> Iterator[tuple[str, dict[str, RunSpec]]]:
    """Each column and pair of seeds, with the runs of the hosts."""
    study = find_study("steady")
    for case in study.cases:
        if columns and case.name not in columns:
            continue
        pairs: dict[tuple[int, int], dict[str, RunSpec]] = {}
        for job in study.jobs(datasets=[case.name]):
            if job.label in HOSTS:
                pairs.setdefault((job.spec.split_seed, job.spec.seed), {})[job.label] = job.spec
        for found in pairs.values():
            yield case.name, found


def fitted(spec: RunSpec, data: Data, runs: Path) -> Method | None:
    """The method of a run; one that learns nothing is fitted here."""
    if spec.method in ("grace", "mario"):
        folder = runs / spec.digest
        return load(folder / "model.safetensors") if (folder / "result.json").exists() else None
    method, _ = split_settings(spec.method, spec.settings)
    return method.fit(data, seed=spec.seed)


def one_pair(hosts: dict[str, Method], data: Data, seed: int) -> dict[str, Any]:
    """The choice of every rule, and the score of every candidate on ood_test."""
    candidates: dict[str, Method] = {}
    for name, host in hosts.items():
        steady = steady_of(host)
        steady.settle(data)
        candidates |= {name: host, f"{name}+steady": steady}
    scores = {
        name: evaluate(one, data, probe=LogisticProbe(), seed=seed)["ood_test"] for name, one in candidates.items()
    }
    blocks = {name: one.blocks(data) for name, one in candidates.items()}
    chosen, expected = {}, {}
    for rule in RULES:
        by_gate = {name: candidates[name] for name in GATE}
        try:
            found = mario.select(by_gate if rule == "gate" else blocks, data, rule=rule, seed=seed)
        except MarioError as error:
            expected[rule] = str(error)
            continue
        chosen[rule], expected[rule] = found.name, found.score
    return {"scores": scores, "chosen": chosen, "expected": expected}


def summary(records: list[dict[str, Any]]) -> str:
    """Regret in points per column and rule, then over columns."""
    columns = list(dict.fromkeys(record["column"] for record in records))
    lines = [f"{'column':32}{'pairs':>6}" + "".join(f"{rule:>18}" for rule in RULES)]
    means: dict[str, list[float]] = {rule: [] for rule in RULES}
    for column in columns:
        own = [record for record in records if record["column"] == column]
        cells = ""
        for rule in RULES:
            regrets = [
                100 * (max(r["scores"].values()) - r["scores"][r["chosen"][rule]]) for r in own if rule in r["chosen"]
            ]
            cells += f"{statistics.mean(regrets):>18.1f}" if regrets else f"{'none':>18}"
            means[rule] += [statistics.mean(regrets)] if regrets else []
        lines.append(f"{column:32}{len(own):>6}{cells}")
    cells = "".join(f"{statistics.mean(found):>18.2f}" if found else f"{'':>18}" for found in means.values())
    return "\n".join([*lines, f"{'mean over columns':38}{cells}"])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--runs", type=Path, required=True)
    options.add_argument("--records", type=Path, default=Path("docs/report/select.jsonl"))
    options.add_argument("--columns", nargs="*", default=[])
    given = options.parse_args()
    records = []
    if given.records.exists():
        records = [json.loads(line) for line in given.records.read_text(encoding="utf-8").splitlines()]
    known = {(record["column"], record["split_seed"], record["seed"]) for record in records}
    for column, found in specs(given.columns):
        first = found["grace"]
        if (column, first.split_seed, first.seed) in known:
            continue
        if not all((given.runs / found[name].digest / "result.json").exists() for name in ("grace", "mario")):
            continue
        began = time.process_time()
        data = load_data(first)
        hosts = {name: fitted(found[name], data, given.runs) for name in HOSTS}
        record = {"column": column, "split_seed": first.split_seed, "seed": first.seed}
        record |= one_pair({name: host for name, host in hosts.items() if host is not None}, data, first.seed)
        record["cpu_seconds"] = round(time.process_time() - began, 1)
        records.append(record)
        with given.records.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        print(
            f"{column}, {first.split_seed}/{first.seed}: {record['chosen']}, {record['cpu_seconds']:.0f} s", flush=True
        )
    print(summary(records))


if __name__ == "__main__":
    main()
