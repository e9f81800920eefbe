"""What the paired test of one row says, in words."""

from mario.report.numbers import counted, interval, metric_title, p_equals, points
from mario.report.tables.entries import LEVEL, Entry, Score


def verdict(entry: Entry, reference: Entry) -> str:
    """What the test of ``entry`` against ``reference`` says, in the same words for either outcome.

    Example:
        >>> from mario.lab.case import Case
        >>> from mario.lab.statistics.paired import paired
        >>> facts = {"study": "mine", "case": Case.find("good-cbas"), "encoder": "gcn", "metric": "accuracy"}
        >>> facts |= {"asked": 2, "supervised": False, "scores": {"ood_test": Score()}}
        >>> grace = Entry(label="grace", method="grace", **facts)
        >>> mario = Entry(label="mario", method="mario", test=paired([0.9, 0.9], [0.8, 0.8]), **facts)
        >>> verdict(mario, grace).split(": ")[0]
        'OOD accuracy of mario minus that of grace, same split and same seed'
    """
    test = entry.test
    if test is None:
        return f"No paired test: {entry.label} and {reference.label} have no runs on the same split and seed."
    head = (
        f"OOD {metric_title(entry.metric)} of {entry.label} minus that of {reference.label}, same split and same seed"
    )
    if test.p_wilcoxon is None:
        return f"{head}: {points(test.mean_difference)} points on a single pair, from which nothing follows."
    facts = [] if test.ci_low is None else [f"95 % interval {interval(test)}"]
    facts += [
        f"n = {test.n} pairs",
        f"Wilcoxon signed-rank {p_equals(test.p_wilcoxon)}",
        f"{test.wins} won, {test.ties} tied, {test.losses} lost",
    ]
    sentences = [f"{head}: {points(test.mean_difference)} points ({'; '.join(facts)})."]
    if shown := test.shown(test.p_wilcoxon, LEVEL):
        shared = test.by_split is not None and test.by_split.n_splits < test.n
        caveat = ", counting every pair as independent, which seeds on one split are not" if shared else ""
        direction = "above" if shown > 0 else "below"
        sentences.append(f"On these runs {entry.label} is {direction} {reference.label} at the 5 % level{caveat}.")
    else:
        sentences.append("On these runs there is no evidence of a difference at the 5 % level.")
    if test.by_split is not None:
        spread = "" if test.by_split.sd is None else f" ± {100 * test.by_split.sd:.2f}"
        splits = counted(test.by_split.n_splits, "split")
        sentences.append(f"Averaged within each split first: {points(test.by_split.mean)}{spread} over {splits}.")
    return " ".join([*sentences, *_of_paper(entry.ood, reference.ood)])


def _of_paper(ours: Score, theirs: Score) -> list[str]:
    a, b = ours.paper, theirs.paper
    if a is None or b is None or a.mean is None or b.mean is None:
        return []
    gain = points((a.mean - b.mean) / 100)
    return [f"The paper has {gain} ({a.mean:.2f} and {b.mean:.2f}, {a.table}), without a test."]
