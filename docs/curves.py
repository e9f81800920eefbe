"""Draw docs/curves.svg, the picture at the top of README, from the runs in docs/report/runs.jsonl: `make reproduce`."""

from pathlib import Path

from mario.experiments.records import read_records
from mario.files import write_text
from mario.report.pictures import curves
from mario.report.svg import to_svg

HERE = Path(__file__).parent
METHODS = ["erm", "grace", "mario"]


def main() -> None:
    case = {"dataset": "good-cbas", "shift": "concept", "encoder": "gcn", "setting": "transductive"}
    runs = [run for run in read_records(HERE / "report" / "runs.jsonl").values() if case.items() <= run.items()]
    # Not the ablation's, which are MARIO's too.
    whole = [run for run in runs if all(run["settings"].get(part, True) for part in ("adversarial", "conditional"))]
    drawing = curves(whole, rows=METHODS)
    svg = to_svg(drawing.figure, name="curves", title=drawing.title, description=drawing.description)
    write_text(HERE / "curves.svg", svg.replace('style="', 'style="background: #fff; ', 1) + "\n")


if __name__ == "__main__":
    main()
