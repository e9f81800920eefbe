"""``mario WORDS --out FOLDER`` that ends by ``kill -9``: which step is its last does not depend on who is quicker.

It is the first step that finds a checkpoint of a step above ``$BEYOND`` and the lines of some steps since. Of two ranks
the second dies, and only in the first start of a job.
"""

import os
import signal
import sys
from pathlib import Path

from torch.optim.optimizer import register_optimizer_step_post_hook

from mario import cli


def main() -> None:
    folder, beyond = Path(sys.argv[-1]), int(os.environ["BEYOND"])

    def die(*_: object) -> None:
        newest = max((int(file.stem) for file in folder.glob("checkpoint/*.safetensors")), default=0)
        if beyond < newest < (folder / "log.jsonl").read_bytes().count(b"\n") - 2:
            os.kill(os.getpid(), signal.SIGKILL)

    if os.environ.get("RANK", "1") == "1" and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        register_optimizer_step_post_hook(die)
    cli.main()


if __name__ == "__main__":
    main()
