"""The report as one HTML page: `document` is the whole, `study` one study of it, `data` what its script works on."""

from mario.report.page.document import write_report

__all__ = ["write_report"]
