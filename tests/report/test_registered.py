"""The registered study whichever way it falls, against loops written from its protocol."""

from collections.abc import Callable
from statistics import fmean

import numpy as np
import pytest
from scipy import stats

from made_up import result
from mario.lab.runs.job import Job
from mario.lab.spec import RunSpec
from mario.lab.studies.collect import Collected, CollectedCase, FinishedRun
from mario.lab.studies.plan import Plan, PlannedCase
from mario.lab.studies.study import Study
from mario.report.registered import Registered, design_of, protocols, registered

PROTOCOL = protocols()["steady"]
SUBJECT, GRACE = PROTOCOL.primary
LABELS = ("raw-features", "grace", "mario", "hops+steady", "grace+steady", "grace, training domains")
LABELS += ("grace+steady, training domains", "grace strong", "grace+steady strong", SUBJECT)
LARGE = 15

Score = Callable[[str, str, int], float | None]


def design() -> Study:
    return design_of("steady")


def study(score: Score, *, name: str = "steady", labels: tuple[str, ...] = LABELS, quick: bool = False) -> Collected:
    """The study with the score of each column, row and seed; None is a run that is not there."""
    planned, cases = [], []
    for case in design().cases:
        jobs, runs = [], []
        for label in labels:
            for split_seed, seed in case.schedule.pairs:
                spec = RunSpec(case=case.case, method="grace", settings={}, split_seed=split_seed, seed=seed)
                jobs.append(Job(spec=spec, label=label))
                if (value := score(case.name, label, seed)) is not None:
                    other = {"id_test": None} if case.case.dataset == "amazon-photo" else {}
                    runs.append(FinishedRun(name, jobs[-1], result(jobs[-1], value, **other)))
        planned.append(PlannedCase(case=case.case, jobs=tuple(jobs)))
        cases.append(CollectedCase(planned[-1], runs, [], len(jobs) - len(runs)))
    title = design().title if name == "steady" else name
    return Collected(Plan(study=name, title=title, cases=tuple(planned), quick=quick), cases)


def found(score: Score, **other: object) -> Registered:
    made = registered(study(score, **other))  # type: ignore[arg-type]
    assert made is not None
    return made


def even(gain: float, *, mario: float = 0.0, **columns: float) -> Score:
    """``gain`` above GRACE in each column, each by its own small amount; ``columns`` replaces that of some."""

    def score(column: str, label: str, seed: int) -> float:
        names = [case.name for case in design().cases]
        own = columns.get(column.replace("-", "_"), gain) + 0.0001 * names.index(column)
        return 0.5 + 0.001 * (seed % 7) + {SUBJECT: own, "mario": mario}.get(label, 0.0)

    return score


def test_the_study_has_the_columns_and_runs_of_the_protocol() -> None:
    jobs = design().jobs()
    assert (len(design().cases), len(jobs)) == (21, 2460)
    assert {len(case.schedule.pairs) for case in design().cases} == {5, 10}
    assert {seed for case in design().cases for pair in case.schedule.pairs for seed in pair} == set(range(10, 20))
    labels = {row.label for row in design().rows}
    assert {row for pair in (PROTOCOL.primary, *PROTOCOL.secondary) for row in pair} | {PROTOCOL.published} <= labels


@pytest.mark.parametrize("seed", [0, 1])
def test_every_number_against_the_formulas(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores: dict[tuple[str, str, int], float] = {}

    def score(*place: object) -> float:
        return scores.setdefault(place, float(rng.uniform(0.4, 0.8)))  # type: ignore[arg-type]

    made = found(score)

    def means(label: str, against: str) -> list[float]:
        return [
            fmean(scores[case.name, label, s] - scores[case.name, against, s] for _, s in case.schedule.pairs)
            for case in design().cases
        ]

    def p(label: str, against: str) -> float:
        return float(stats.wilcoxon(means(label, against), method="exact").pvalue)

    over = made.primary.over
    assert over is not None
    assert over.mean_difference == pytest.approx(fmean(means(SUBJECT, GRACE)))
    assert over.p_wilcoxon == pytest.approx(p(SUBJECT, GRACE))
    listed = [p(*rows) for rows in PROTOCOL.secondary]
    assert [(one.label, one.against) for one in made.secondary] == list(PROTOCOL.secondary)
    for one, raw in zip(made.secondary, listed, strict=True):
        # Holm: the largest of (number of tests with a p not below it) times p, over all with a smaller p.
        steps = [min(1.0, sum(other >= q for other in listed) * q) for q in listed if q <= raw]
        assert one.p_holm == pytest.approx(max(steps))
    low = min(means(SUBJECT, GRACE))
    above = [d for d in means(SUBJECT, "mario") if d >= 0.02]
    cbas = means(SUBJECT, "mario")[:2]
    assert [condition.met for condition in made.goal] == [
        fmean(means(SUBJECT, GRACE)) >= 0.08 and p(SUBJECT, GRACE) < 0.01,
        low >= -0.01,
        len(above) >= 8,
        min(cbas) >= 0,
    ]


def test_all_is_well_if_every_column_gains() -> None:
    made = found(even(0.09))
    assert made.claim_holds
    assert made.goal_met
    assert [condition.met for condition in made.goal] == [True] * 4


@pytest.mark.parametrize(
    ("score", "met", "said"),
    [
        (even(0.07), [False, True, True, True], "+7.10, p < 0.001"),
        (even(0.1, webkb_concept=-0.02), [True, False, True, True], "webkb-concept −1.96"),
        (even(0.1, mario=0.09), [True, True, False, True], "0 of 21 columns"),
        (even(0.12, mario=0.09, good_cbas_covariate=0.08), [True, True, True, False], "good-cbas-covariate −0.99"),
    ],
)
def test_each_condition_can_fail_alone(score: Score, met: list[bool], said: str) -> None:
    made = found(score)
    assert [condition.met for condition in made.goal] == met
    assert said in made.goal[met.index(False)].found
    assert made.claim_holds
    assert made.goal_met is False


def test_the_claim_is_refuted_by_a_loss_and_by_noise() -> None:
    assert found(even(-0.05)).claim_holds is False
    names = [case.name for case in design().cases]
    assert found(lambda c, row, _: 0.5 + (row == SUBJECT) * 0.1 * (-1) ** names.index(c)).claim_holds is False


def test_there_is_no_verdict_before_all_columns_are_done() -> None:
    score = even(0.1)
    late = ("amazon-photo-concept", SUBJECT, 14)
    made = found(lambda *place: None if place == late else score(*place))
    assert (made.primary.state, made.primary.over) == ("20 of 21 columns done", None)
    assert made.primary.pairs["amazon-photo-concept"] == 4
    assert made.claim_holds is None
    assert made.goal_met is None
    assert {condition.found for condition in made.goal} == {"20 of 21 columns done"}
    assert all(one.p_holm is None for one in made.secondary)
    without = found(lambda column, label, seed: None if label == "mario" else score(column, label, seed))
    assert [condition.met for condition in without.goal] == [True, True, None, None]
    assert without.goal_met is None


def test_runs_of_other_seeds_and_of_the_quick_form_do_not_count() -> None:
    score = even(0.1)
    whole = study(score)
    more = []
    for case in whole.cases:
        extra = [
            FinishedRun("steady", job, result(job, 0.0))
            for label in (SUBJECT, GRACE)
            for job in [
                Job(spec=RunSpec(case=case.case, method="grace", settings={}, split_seed=3, seed=3), label=label)
            ]
        ]
        more.append(CollectedCase(case.planned, [*case.runs, *extra]))
    made = registered(Collected(whole.plan, more))
    assert made is not None
    assert made.primary.over == found(score).primary.over
    assert registered(study(score, quick=True)) is None


def test_the_cost_is_over_the_columns_with_an_id_test() -> None:
    made = found(even(0.1))
    assert (len(made.cost.asked), made.cost.state) == (20, "20 of 20 columns done")
    assert made.cost.over is not None
    assert made.cost.over.mean_difference == pytest.approx(0.1 + 0.0001 * 9.5)


def test_a_row_that_large_columns_leave_out_is_compared_on_the_others() -> None:
    made = found(even(0.1), labels=(*LABELS, "costa"))
    costa = next(one for one in made.rows if one.label == "costa")
    assert costa.state == "6 of 6 columns done"


def test_equal_cpu_time_is_another_study() -> None:
    score = even(0.1)
    row = PROTOCOL.equal_cpu[1]
    other = study(lambda column, label, seed: 0.53, name=PROTOCOL.equal_cpu[0], labels=(row,))
    made = registered(study(score), [study(score), other])
    assert made is not None
    assert made.equal_cpu is not None
    assert made.equal_cpu.state == "21 of 21 columns done"
    assert made.equal_cpu.against == row
    assert found(score).equal_cpu is None


def test_a_study_of_somebody_else_has_no_registered_analysis() -> None:
    assert registered(study(even(0.1), name="mine")) is None
    own = study(even(0.1))
    assert registered(Collected(Plan(study="steady", title="Steady hands", cases=own.plan.cases), own.cases)) is None
