"""The pages of jobs, as people use them."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.served import Served, Visit, check_page

SCRIPT = "<script>document.title='run'</script><img src=x onerror=document.title='run'>"
BIG = 9_007_199_254_740_993


def create(served: Served, **body: object) -> None:
    served.api("POST", "/v1/jobs", json={"task": "t"} | body)


def test_a_list_is_filtered_paged_and_acted_on(visit: Visit, served: Served) -> None:
    jobs = [{"id": f"list-{number:03}", "task": "list.task", "every": "PT1H"} for number in range(60)]
    served.api("POST", "/v1/jobs/batch", json={"jobs": jobs}, headers={"idempotency-key": "list"})
    page = visit.log_in().page
    page.keyboard.press("/")
    page.keyboard.type("task:list.task status:active")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs?task=list.task&status=active")
    seen = page.locator("tbody th").all_inner_texts()
    page.get_by_role("link", name="Next page").click()
    page.get_by_role("link", name="First page").wait_for()
    seen += page.locator("tbody th").all_inner_texts()
    assert sorted(seen) == [f"list-{number:03}" for number in range(60)]

    page.get_by_text("Columns", exact=True).first.click()
    page.get_by_label("Queue", exact=True).uncheck()
    page.get_by_label("Version", exact=True).check()
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**columns=**")
    address = page.url
    assert page.locator("thead").inner_text().split() == [
        "Job",
        "Status",
        "Task",
        "Schedule",
        "Next",
        "Executions",
        "Version",
    ]
    page.locator("tbody th a").first.click()
    page.wait_for_url("**/jobs/list-*")
    page.go_back()
    expect(page).to_have_url(address)
    assert page.locator("#filter").input_value() == "status:active task:list.task"

    for box in page.get_by_role("checkbox", name=re.compile("Select list-")).all()[:3]:
        box.check()
    assert page.locator("[data-ticked]").inner_text() == "3 selected"
    page.get_by_role("button", name="Pause", exact=True).click()
    assert page.get_by_role("status").inner_text() == "3 of 3 jobs paused."
    expect(page).to_have_url(address)

    page.locator("summary", has_text="All that match").click()
    page.get_by_role("button", name="Cancel all…").click()
    assert "57 jobs would be changed" in page.locator("#counted").inner_text()
    page.locator("#all-reason").fill("the end")
    page.locator("#counted").get_by_label(re.compile("This cannot be taken back")).check()
    page.get_by_role("button", name="Cancel 57 jobs").click()
    page.wait_for_url("**/operations/*")
    operation = served.api("GET", f"/v1/operations/{page.url.rsplit('/', 1)[1]}").json()
    assert (operation["kind"], operation["reason"]) == ("cancel", "the end")
    assert operation["filter"] == {"status": "active", "task": "list.task"}

    page.goto("/jobs?task=list.task&status=paused")
    page.locator("summary", has_text="All that match").click()
    page.get_by_role("button", name="Resume all…").click()
    assert "3 jobs would be changed" in page.locator("#counted").inner_text()
    check_page(visit)

    page.goto("/jobs?filter=colour:red")
    assert "write name:value" in page.get_by_role("alert").inner_text()
    assert page.locator("#filter").input_value() == "colour:red"
    assert not visit.complaints


def test_a_job_shows_all_and_does_what_it_is_told(visit: Visit, served: Served) -> None:
    create(
        served,
        id="told",
        cron="30 2 * * *",
        zone="Europe/Berlin",
        payload={"text": SCRIPT, "number": BIG},
        tags=["a"],
    )
    page = visit.log_in().page
    page.goto("/jobs/told")
    assert str(BIG) in page.get_by_label("Payload").inner_text()
    assert SCRIPT in page.get_by_label("Payload").inner_text().replace("\\", "")
    assert "At 02:30" in page.locator("main").inner_text()
    check_page(visit)

    page.locator("summary", has_text="Pause").click()
    page.locator("#do-pause-reason").fill(SCRIPT)
    page.get_by_role("button", name="Pause the job").click()
    note = page.locator(".note")
    assert SCRIPT in note.inner_text()
    assert "paused: none of its instants" in page.locator("main").inner_text()

    # Somebody else was first: the action stays on its page, with its reason, and says why.
    page.locator("summary", has_text="Resume").click()
    page.locator("#do-resume-reason").fill("templates are fixed")
    served.api("PATCH", "/v1/jobs/told", json={"priority": 7})
    page.get_by_role("button", name="Resume the job").click()
    assert "another version" in page.get_by_role("alert").inner_text()
    expect(page).to_have_url(re.compile("/jobs/told$"))
    assert page.locator("#do-resume-reason").input_value() == "templates are fixed"
    page.get_by_role("button", name="Resume the job").click()
    page.locator(".badge", has_text="active").wait_for()

    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label(re.compile("^Cron rule,")).fill("61 2 * * *")
    page.get_by_role("button", name="Save version 3").click()
    assert "cron" in page.get_by_role("alert").inner_text()
    assert page.get_by_label(re.compile("^Cron rule,")).input_value() == "61 2 * * *"
    page.get_by_label(re.compile("^Cron rule,")).fill("45 3 * * *")
    page.get_by_role("button", name="Save version 3").click()
    page.wait_for_url("**/jobs/told")
    changes = page.locator("#versions li").first
    assert changes.locator("del").inner_text() == "30 2 * * *"
    assert changes.locator("ins").inner_text() == "45 3 * * *"
    assert str(BIG) in page.get_by_label("Payload").inner_text()

    page.locator("summary", has_text="Run now").click()
    page.get_by_role("button", name="Run once now").click()
    page.wait_for_url("**/executions/told:*")
    page.get_by_role("link", name="told", exact=True).click()

    page.get_by_role("textbox", name=re.compile("^From")).fill("2025-12-01T00:00:00Z")
    page.get_by_role("textbox", name=re.compile("^Until")).fill("tomorrow")
    page.get_by_role("button", name="Count").click()
    assert "RFC 3339" in page.get_by_role("alert").inner_text()
    page.get_by_role("textbox", name=re.compile("^Until")).fill("2025-12-03T00:00:00Z")
    page.get_by_role("button", name="Count").click()
    page.get_by_role("button", name="Run 2 instants").click()
    page.wait_for_url("**/operations/*")

    page.goto("/jobs/told")
    page.locator("summary", has_text="Cancel").click()
    sending = page.get_by_role("button", name="Cancel told")
    sending.click()
    expect(page.locator(".badge").first).to_have_text("active")
    page.get_by_label("This cannot be taken back.").check()
    sending.click()
    page.locator(".title .badge", has_text="cancelled").wait_for()
    assert "The job is cancelled." in page.locator("main").inner_text()
    page.locator("summary", has_text="Purge").click()
    page.get_by_label("This cannot be taken back.").check()
    page.get_by_role("button", name="Purge told").click()
    assert page.get_by_role("status").inner_text() == "The job told and its history are shown no more."
    answer = page.goto("/jobs/told")
    assert answer is not None
    assert answer.status == 404
    assert page.title() != "run"
    assert not visit.complaints


def test_a_job_is_created_with_its_instants_in_sight(visit: Visit, served: Served) -> None:
    page = visit.log_in().page
    page.get_by_role("link", name="New job").click()
    page.get_by_label(re.compile("^Task")).fill("report.build")
    page.get_by_label(re.compile("^Cron rule,")).fill("30 2 29 3 *")
    page.get_by_label(re.compile("^Zone")).fill("Europe/Berlin")
    # 02:30 is left out on the last Sunday of March.
    expect(page.locator("#preview")).to_contain_text("2026-03-29 03:00:00 +02:00")
    assert page.locator("#preview .change").first.inner_text()
    page.get_by_label(re.compile("^Zone")).fill("Europe/Nowhere")
    expect(page.locator("#preview")).to_contain_text("zone:")
    check_page(visit)
    page.get_by_label(re.compile("^Payload")).fill("{not json")
    page.get_by_role("button", name="Create the job").click()
    assert "payload: is no JSON" in page.get_by_role("alert").inner_text()
    assert page.get_by_label(re.compile("^Payload")).input_value() == "{not json"
    page.get_by_label(re.compile("^Payload")).fill(f'[{BIG}, "{SCRIPT}"]')
    page.get_by_label(re.compile("^Zone")).fill("Europe/Berlin")
    page.get_by_label(re.compile("^Id")).fill("made-here")
    page.get_by_role("button", name="Create the job").click()
    page.wait_for_url("**/jobs/made-here")
    assert page.get_by_role("status").inner_text() == "The job is created."
    assert served.api("GET", "/v1/jobs/made-here").content.count(f'[{BIG}, "{SCRIPT}"]'.encode()) == 1
    assert not visit.complaints


def test_a_viewer_sees_no_buttons(visit: Visit, served: Served) -> None:
    create(served, id="seen", every="PT1H")
    page = visit.log_in("key-viewer").page
    for path in ("/jobs", "/jobs/seen", "/dead-letters"):
        page.goto(path)
        assert page.locator("main button:not(.copy)").all_text_contents() in (
            [],
            ["Filter", "Show"],
            ["Filter"],
        ), path
    page.goto("/jobs/new")
    assert page.get_by_role("heading", level=1).inner_text() == "Denied"
