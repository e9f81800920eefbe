"""The text files of LINQS's WebKB (Lu & Getoor, ICML 2003)."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from mario.errors import MarioError

CLASSES = ("course", "faculty", "project", "staff", "student")


def read_linqs(content: Path, cites: Path) -> Data:
    """One university: pages (``.content``) and links (``.cites``: the linked page, then the linking page).

    Classes are numbered by name, the same for every university.
    """
    page_id: dict[str, int] = {}
    words: list[np.ndarray] = []
    classes: list[int] = []
    for number, line in _lines(content):
        page, *row = line.split("\t")
        label = row.pop() if row else ""
        wrong_width = bool(words) and len(row) != len(words[0])
        if page in page_id or label not in CLASSES or not set(row) <= {"0", "1"} or wrong_width:
            raise MarioError(
                f"{content.name} line {number} is damaged: it must be a new URL, 0/1 words and a class, tab-separated"
            )
        page_id[page] = len(page_id)
        words.append(np.array(row, dtype=np.float32))
        classes.append(CLASSES.index(label))
    links = []
    for number, line in _lines(cites):
        ends = line.split()
        if len(ends) != 2 or not set(ends) <= page_id.keys():
            raise MarioError(f"{cites.name} line {number} is damaged: it must be two URLs of pages in {content.name}")
        links.append((page_id[ends[1]], page_id[ends[0]]))
    return Data(
        x=torch.from_numpy(np.stack(words)),
        edge_index=torch.tensor(links, dtype=torch.int64).view(-1, 2).t().contiguous(),
        y=torch.tensor(classes),
    )


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise MarioError(f"{path.name} cannot be read: {error}") from None
    return [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
