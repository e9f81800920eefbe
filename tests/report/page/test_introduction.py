"""What is said of a study before its tables."""

from made_up import collected
from mario.report.page.introduction import Standing, introduction, values


def test_schedules_that_differ_are_told_case_by_case() -> None:
    made = collected({"good-cbas-concept": {"mario": [0.5], "random-init": [0.4]}, "webkb-concept": {"mario": [0.6]}})
    assert "<dd>200 optimizer steps, scores taken at 10 checkpoints</dd>" in introduction(made)
    made.cases[1].results[0]["steps"] = 50
    made.cases[0].results[1]["steps"] = 10  # a control takes no steps
    told = introduction(made)
    assert "splits 0; seeds 0; 1 run a row asked for" in told
    assert "good-cbas-concept: 200 optimizer steps, scores taken at 10 checkpoints. webkb-concept: 50 opt" in told


def test_runs_are_counted_and_data_that_is_missing_is_no_run_undone() -> None:
    made = collected(
        {"good-cbas-concept": {"mario": [0.5, None, None]}, "webkb-concept": {"mario": [None]}},
        failed={("good-cbas-concept", "mario"): "boom"},
        missing={"webkb-concept": "no files"},
    )
    standing = Standing.of(made)
    assert (standing.done, standing.failed, standing.unfinished) == (1, 2, 0)
    assert standing.words == "1 run done, 2 failed, no data for webkb-concept"


def test_what_stands_in_backticks_is_code_and_nothing_more() -> None:
    made = collected({"webkb-concept": {"mario": [None]}}, missing={"webkb-concept": "`mario data <x>` fetches it"})
    assert "<code>mario data &lt;x&gt;</code> fetches it" in introduction(made)
    made = collected({"good-webkb-concept": {"mario": [0.5]}})
    made.cases[0].results[0]["faults"] = ["`webkb` is <sound>"]
    assert "<code>webkb</code> is &lt;sound&gt;</p>" in introduction(made)


def test_values_are_listed_once_and_numbers_in_order() -> None:
    assert values([2, 0, 1, 1]) == "0 to 2"
    assert values([10, 2]) == "2, 10"
    assert values(["b", None, "a", "b"]) == "b, a"
    assert values([]) == ""
