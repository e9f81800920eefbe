"""Dates of many forms are the same seconds."""

import datetime

import numpy as np
import pyarrow as pa
import pytest

from mario.graphs.tables.dates import dates, find_formats

NOON = datetime.datetime(2017, 6, 30, 12, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(
    ("value", "hour"),
    [
        ("2017-06-30T12:00:00Z", True),
        ("2017-06-30 14:00:00+02:00", True),
        ("2017-06-30", False),
        ("20170630", False),
        ("2017/06/30 12:00", True),
        ("30.06.2017", False),
        ("06/30/2017 12:00:00 PM", True),
        ("30 Jun 2017", False),
        ("June 30, 2017", False),
        ("Fri, 30 Jun 2017 12:00:00 +0000", True),
        ("Fri Jun 30 12:00:00 +0000 2017", True),
        (20170630, False),
        (1498824000, True),
        (1498824000000, True),
        (NOON, True),
        (NOON.date(), False),
    ],
)
def test_a_form(value: object, hour: bool) -> None:
    array = pa.array([value, None])
    read = dates(array, "day", find_formats(array, "day"))
    assert read.missing.tolist() == [False, True]
    assert not read.unparsable.any()
    assert read.values[0] == NOON.timestamp() - (0 if hour else 12 * 3600)


def test_years_and_what_is_no_day() -> None:
    assert find_formats(pa.array([1999, 2004]), "a") == ("year",)
    read = dates(pa.array([1970, 1971, 0, 99999]), "a", ("year",))
    assert read.values[:2].tolist() == [0, 365 * 86400]
    assert read.unparsable.tolist() == [False, False, True, True]
    assert dates(pa.array([20170631, 20171301]), "a", ("yyyymmdd",)).unparsable.all()
    assert dates(pa.array(["2017-02-30", "soon", "2017-W01"]), "a", ("ISO 8601",)).unparsable.all()


def test_a_column_with_two_forms_has_both() -> None:
    array = pa.array(["2017-06-30", "2017-07-01", "30.06.2017", "n/a"])
    formats = find_formats(array, "a")
    assert formats == ("ISO 8601", "%d.%m.%Y")
    read = dates(array, "a", formats)
    assert read.values[0] == read.values[2]
    assert read.missing.tolist() == [False, False, False, True]


def test_day_and_month_are_never_mixed() -> None:
    array = pa.array(["25/12/2017", "24/12/2017", "12/13/2017"])
    formats = find_formats(array, "a")
    assert formats == ("%d/%m/%Y",)
    assert dates(array, "a", formats).unparsable.tolist() == [False, False, True]


def test_dates_of_any_century() -> None:
    array = pa.array(["0001-01-01", "1492-10-12", "9999-12-31"])
    read = dates(array, "a", find_formats(array, "a"))
    assert read.there.all()
    assert np.all(np.diff(read.values) > 0)
