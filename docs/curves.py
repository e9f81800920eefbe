"""Draw docs/curves.svg, the picture at the top of README, from the runs of `make reproduce`."""

from pathlib import Path

from mario.files import write_text
from mario.lab.studies.collect import collect
from mario.lab.studies.plan import make_plan
from mario.lab.studies.read import find_study
from mario.report.pictures import curves
from mario.report.svg import to_image

HOME = Path(__file__).parent.parent


def main() -> None:
    plan = make_plan(find_study("table-concept"), datasets=["good-cbas"], methods=["erm", "grace", "mario"])
    (case,) = collect(plan, HOME / "runs" / "paper").cases
    drawing = curves(case.frame)
    svg = to_image(drawing.figure, name="curves", title=drawing.title, description=drawing.description)
    write_text(HOME / "docs" / "curves.svg", svg)


if __name__ == "__main__":
    main()
