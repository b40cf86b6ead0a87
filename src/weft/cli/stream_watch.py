"""A line on stderr for each batch of a streaming run."""

from __future__ import annotations

from weft.cli.commands.stream_text import moment
from weft.cli.terminal import many, say
from weft.streams.plan.resolved import JobPlan
from weft.streams.run.report import BatchReport, Listener


class Watching(Listener):
    """Tells people what each batch did."""

    def __init__(self, plan: JobPlan) -> None:
        self._wide = max((len(s.name) for s in plan.statements), default=0)

    def on_batch(self, report: BatchReport) -> None:
        """Say what came in and went out; a batch in which nothing happened is not worth a line."""
        if not (report.final or report.rows_out or any(report.rows_in.values())):
            return
        what = "flush" if report.final else f"batch {report.batch}"
        came = ", ".join(f"{name} {count:,}" for name, count in report.rows_in.items() if count)
        mark = (
            f"   watermark {moment(report.watermark)}"
            if report.watermark is not None and not report.final
            else ""
        )
        back = f", waits for {report.held_back_by}" if mark and report.held_back_by else ""
        say(
            f"{report.statement:<{self._wide}}  {what:<8}  in {came or '0'}   out {many(report.rows_out, 'row')}"
            f"{mark}{back}   {report.seconds:.1f} s"
        )
