"""Reports that cannot be taken at all, whatever they say."""

from __future__ import annotations

from typing import Final

from minutebook.domain.claims import senseless as senseless_claims
from minutebook.domain.offers import TASKS_MAX
from minutebook.domain.records import Report
from minutebook.domain.results import DETAILS_BYTES_MAX, RESULT_BYTES_MAX

ROWS_MAX: Final = 16_384
FAILED_MAX: Final = 100
HELD_MAX: Final = 65_536
QUEUES_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 256


def senseless(report: Report, position: int) -> str:
    """Why a report cannot be taken at all, where the log ends with the frame at `position`; empty if it can."""
    if not report.session or len(report.session) > NAME_CHARS_MAX or "." not in report.session:
        return "a session is <worker id>.<n>"
    if report.full is not None and len(report.full.tasks) > TASKS_MAX:
        return f"at most {TASKS_MAX} tasks"
    if report.full is not None and (len(report.full.held) > HELD_MAX or len(report.full.queues) > QUEUES_MAX):
        return f"at most {HELD_MAX} tokens held and {QUEUES_MAX} queues"
    if report.pulse is not None and report.pulse.offer < 0:
        return "an offer is not negative"
    if report.pulse is not None and report.pulse.last_token >> 16 > position:
        return "a last token seen that was never given"
    for ends in (report.failed, report.snoozed, report.cancelled, report.progress):
        if len(ends) > FAILED_MAX:
            return f"at most {FAILED_MAX} failures, and as many snoozed, cancelled and in progress"
    if any(len(progress.details) > DETAILS_BYTES_MAX for progress in report.progress):
        return f"details of progress end at {DETAILS_BYTES_MAX} bytes"
    for part in (report.succeeded, report.handed_back):
        if part is None:
            continue
        rows = len(part.executions)
        if len(part.tenant) != rows or len(part.tokens) != rows or rows > ROWS_MAX:
            return "columns of unequal length"
        if any(not 0 <= number < len(part.tenants) for number in set(part.tenant)):
            return "a tenant that is not in the dictionary"
    if report.succeeded is not None:
        rows = len(report.succeeded.executions)
        if len(report.succeeded.start_delay_ms) != rows or len(report.succeeded.run_ms) != rows:
            return "columns of unequal length"
        if len(report.succeeded.results) not in (0, rows):
            return "columns of unequal length"
        if any(len(result) > RESULT_BYTES_MAX for result in report.succeeded.results):
            return f"a result ends at {RESULT_BYTES_MAX} bytes"
    return senseless_claims(report.claims)
