"""Forms of a job: to create one, with a preview of its schedule, and to change one."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response

from api.auth import Caller, Scope
from api.decisions import refusal_of
from api.pages import job_form
from api.pages.access import Seen, page_router, ready
from api.pages.doing import Done, Refusal, asked_in, refusal
from api.pages.forms import Form, read_form
from api.pages.rendering import redirect, render
from api.problems import Refused
from api.routes import job_changes, jobs
from api.routes.schedules import preview_of
from api.services import Services
from minutebook.client.models import Job
from minutebook.client.preview_models import Preview

router = page_router()
Reading = Annotated[Caller, Depends(Seen(Scope.JOBS_READ))]
Writing = Annotated[Caller, Depends(Seen(Scope.JOBS_WRITE))]
_SHOWN: Final = 5
_STALE: Final = "Somebody changed the job since this form was opened. Open the form anew and enter again what is still wanted."


@router.get("/jobs/new")
async def show_new(request: Request, caller: Writing) -> Response:
    """The empty form; the query may fill some of it."""
    await ready(request)
    known = {
        name: value for name, value in request.query_params.items() if name in (*job_form.FIELDS, "cron")
    }
    return _form(request, None, job_form.values_of(None) | known)


@router.post("/jobs/new")
async def create_job(request: Request, caller: Writing) -> Response:
    """Create it and show it."""
    services = await ready(request)
    form = await read_form(request)
    given = job_form.typed(form)
    if form.text("do") == "preview":
        return _form(request, None, given, preview=await _preview(request, services, caller, form))
    try:
        decision = await jobs.create(services, caller, job_form.create_body(given), asked_in(form))
    except Refused as error:
        return _form(request, None, given, refused=refusal(request, error, form))
    done = Done("The job is created.", decision)
    is_known = decision.row is not None
    return redirect(request, f"/jobs/{decision.subject}" if is_known else "/jobs", done.word(), done.after())


@router.post("/jobs/preview")
async def preview_schedule(request: Request, caller: Reading) -> Response:
    """A part of a page: what the schedule in the form means, and its next instants."""
    services = await ready(request)
    shown = await _preview(request, services, caller, await read_form(request))
    return render(request, "preview.html", **shown)


@router.get("/jobs/{job_id}/edit")
async def show_edit(request: Request, caller: Writing, job_id: str) -> Response:
    """The form as the job is."""
    services = await ready(request)
    job = jobs.find_job(services, caller, job_id)
    return _form(request, job, job_form.values_of(job))


@router.post("/jobs/{job_id}/edit")
async def edit_job(request: Request, caller: Writing, job_id: str) -> Response:
    """Change what was changed in the form, if the job is still what the form was made of."""
    services = await ready(request)
    form = await read_form(request)
    job = jobs.find_job(services, caller, job_id)
    given = job_form.typed(form) | {"id": job_id}
    if form.text("do") == "preview":
        return _form(request, job, given, preview=await _preview(request, services, caller, form))
    try:
        asked = asked_in(form)
        if asked.expected_version != job.version:
            raise Refused("stale-version", _STALE)
        body = job_form.patch_body(job_form.values_of(job), given)
        decision = await job_changes.edit(services, caller, job_id, body, asked)
        if decision.row is not None and not decision.row.is_accepted:
            raise refusal_of(decision.row)
    except Refused as error:
        return _form(request, job, given, refused=refusal(request, error, form), version=form.text("version"))
    done = Done("The job is changed.", decision)
    return redirect(request, f"/jobs/{job_id}", done.word(), done.after())


async def _preview(request: Request, services: Services, caller: Caller, form: Form) -> dict[str, Any]:
    """What the part of the page is made of: the preview, nothing, or why there is none."""
    try:
        body = job_form.schedule_body(job_form.typed(form), _SHOWN)
        coming: Preview | None = None if body is None else await preview_of(services, caller, body)
    except Refused as error:
        return {"coming": None, "preview_refused": refusal(request, error, form)}
    return {"coming": coming, "preview_refused": None}


def _form(
    request: Request,
    job: Job | None,
    values: dict[str, str],
    *,
    refused: Refusal | None = None,
    preview: dict[str, Any] | None = None,
    version: str = "",
) -> Response:
    shown = preview or {"coming": None, "preview_refused": None}
    return render(
        request,
        "job_form.html",
        refused.status if refused else 200,
        job=job,
        values=values,
        version=version or (job.version if job else ""),
        refused=refused,
        **shown,
    )
