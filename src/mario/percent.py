"""A score as people read it: the one form of the terminal, messages and cards."""


def percent(fraction: float | None) -> str:
    """A fraction in percent with one decimal; empty for ``None``.

    Example:
        >>> percent(0.9142857142857143), percent(1), percent(None)
        ('91.4 %', '100.0 %', '')
    """
    return "" if fraction is None else f"{100 * fraction:.1f} %"
