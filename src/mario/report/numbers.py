"""Numbers and names as tables and sentences print them. Scores are fractions and are printed in percent."""

from mario.evaluation.metrics import METRICS
from mario.lab.statistics.paired import Paired, Summary


def metric_title(name: str) -> str:
    """A metric as tables and axes name it.

    Example:
        >>> metric_title("roc_auc")
        'ROC-AUC'
    """
    return METRICS[name].title if name in METRICS else name


def counted(n: int, what: str) -> str:
    """A number with its noun.

    Example:
        >>> counted(1, "run"), counted(2, "study"), counted(0, "run")
        ('1 run', '2 studies', '0 runs')
    """
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{n} {what if n == 1 else plural}"


def percent(summary: Summary | None) -> str:
    """``93.33 ± 1.20``; without the spread for a single run.

    Example:
        >>> from mario.lab.statistics.paired import summarize
        >>> percent(summarize([0.9, 0.92])), percent(summarize([0.9])), percent(None)
        ('91.00 ± 1.41', '90.00', '–')
    """
    if summary is None:
        return "–"
    return f"{100 * summary.mean:.2f}" + ("" if summary.sd is None else f" ± {100 * summary.sd:.2f}")


def points(fraction: float) -> str:
    """A difference in percentage points with its sign, and with a minus sign instead of a hyphen.

    Example:
        >>> points(0.0264), points(-0.01), points(0.0)
        ('+2.64', '−1.00', '0.00')
    """
    text = f"{100 * fraction:+.2f}"
    return "0.00" if float(text) == 0 else text.replace("-", "−")


def interval(test: Paired) -> str:
    """The bootstrap interval of a difference, in points.

    Example:
        >>> from mario.lab.statistics.paired import paired
        >>> interval(paired([0.9] * 5, [0.8] * 5)), interval(paired([0.9] * 3, [0.8] * 3))
        ('+10.00 to +10.00', '–')
    """
    return "–" if test.ci_low is None or test.ci_high is None else f"{points(test.ci_low)} to {points(test.ci_high)}"


def p_value(p: float | None) -> str:
    """A p-value to three decimals, never as zero.

    Example:
        >>> p_value(0.0312), p_value(0.00002), p_value(None)
        ('0.031', '< 0.001', '–')
    """
    if p is None:
        return "–"
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def p_equals(p: float | None) -> str:
    """A p-value as a sentence has it.

    Example:
        >>> p_equals(0.0312), p_equals(0.00002), p_equals(None)
        ('p = 0.031', 'p < 0.001', 'no test')
    """
    return "no test" if p is None else f"p = {p_value(p)}".replace("= <", "<")
