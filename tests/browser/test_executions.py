"""The pages of executions and dead letters, as people use them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.api import runs
from tests.api.memory import Installation
from tests.api.test_task_types import declare
from tests.browser.served import Served, Visit, check_page

SCRIPT = "<script>document.title='run'</script>"


def give_up(served: Served, *names: str, task: str = "charge.card") -> list[str]:
    """Executions of new jobs that fail for good."""
    for name in names:
        served.api("POST", "/v1/jobs", json={"id": name, "task": task, "payload": {"text": SCRIPT}})

    def fail(world: Installation) -> list[str]:
        runs.come(world)
        found = []
        for name in names:
            row = next(iter(world.services.view.executions("acme", name, b"")))
            world.clock.advance(1_500)
            runs.fail(world, row[1], f"Error{name[-1]}{SCRIPT}")
            found.append(row[1])
        world.clock.advance(1)
        return found

    return served.do(fail)


def test_a_dead_letter_is_read_and_run_again(visit: Visit, served: Served, tmp_path: Path) -> None:
    served.do(lambda world: declare(world, "card.pay", '{"properties": {"n": {"type": "integer"}}}'))
    name, *_ = give_up(served, "dead-a", "dead-b", "dead-c", task="card.pay")
    page = visit.log_in().page
    page.goto("/dead-letters?task=card.pay")
    reasons = page.locator(".reasons tbody tr")
    reasons.first.wait_for()
    assert reasons.count() == 3
    check_page(visit)
    reasons.first.get_by_role("link").click()
    page.wait_for_url("**error_type=**")
    assert page.locator("form.list tbody tr").count() == 1

    page.goto(f"/executions/{name}")
    assert page.locator(".timeline svg").count() == 1
    assert SCRIPT in page.locator(".problem").first.inner_text()
    check_page(visit)
    page.locator("summary", has_text="Why").click()
    page.get_by_text("Dead", exact=True).wait_for()
    page.locator("summary", has_text="What the log says").click()
    page.locator(".lazy tr[id^=event-]").first.wait_for()
    assert SCRIPT in page.locator(".lazy").last.inner_text()
    with page.expect_download() as download:
        page.get_by_role("link", name="JSON").click()
    download.value.save_as(tmp_path / "execution.json")
    assert json.loads((tmp_path / "execution.json").read_bytes())["execution_id"] == name

    payload = page.get_by_label(re.compile("^Payload JSON"))
    payload.fill('{"n": "x"}')
    page.locator("#redrive-reason").fill("the number was a text")
    page.get_by_role("button", name="Redrive").click()
    assert "payload/n" in page.get_by_role("alert").inner_text()
    assert payload.input_value() == '{"n": "x"}'
    payload.fill('{"n": 9007199254740993}')
    page.get_by_role("button", name="Redrive").click()
    page.get_by_text("The execution runs again.").wait_for()
    assert "edited at a redrive" in page.locator("main").inner_text()

    page.goto("/dead-letters?task=card.pay")
    assert page.locator("form.list tbody tr").count() == 2
    page.get_by_label("Select all on this page").check()
    page.get_by_placeholder("Reason").fill("again")
    page.get_by_role("button", name="Redrive selected").click()
    assert page.get_by_role("status").inner_text() == "2 of 2 run again."
    assert page.title() != "run"
    assert not visit.complaints


def test_all_that_match_are_counted_then_run_again(visit: Visit, served: Served) -> None:
    give_up(served, "all-a", "all-b", task="all.task")
    page = visit.log_in().page
    page.goto("/dead-letters?task=all.task")
    page.get_by_role("button", name="Redrive all that match…").click()
    assert "2 would run again" in page.locator("#counted").inner_text()
    page.get_by_label(re.compile("^A second at most")).fill("0")
    page.get_by_role("button", name="Redrive 2").click()
    assert "rate_per_s" in page.get_by_role("alert").inner_text()
    page.get_by_role("button", name="Redrive all that match…").click()
    page.get_by_role("button", name="Redrive 2").click()
    page.wait_for_url("**/operations/*")
    served.do(runs.operate_to_the_end)
    operation = served.api("GET", f"/v1/operations/{page.url.rsplit('/', 1)[1]}").json()
    assert (operation["state"], operation["progress"]["done"], operation["rate_per_s"]) == (
        "completed",
        2,
        50,
    )


def test_dead_letters_are_discarded_one_or_many(visit: Visit, served: Served) -> None:
    first, _, _ = give_up(served, "gone-a", "gone-b", "gone-c", task="gone.task")
    page = visit.log_in().page
    page.goto(f"/executions/{first}")
    page.locator("summary", has_text="Discard").click()
    page.locator("#do-discard-reason").fill("sent by hand")
    page.get_by_label("It can be redriven no more.").check()
    page.get_by_role("button", name="Discard this execution").click()
    assert page.get_by_role("status").inner_text() == "The execution is discarded."
    assert ": sent by hand" in page.locator("main dl.facts").inner_text()
    assert page.locator("#redrive").count() == 0
    check_page(visit)

    page.goto("/dead-letters?task=gone.task")
    assert page.locator("form.list tbody tr").count() == 2
    page.locator("form.list tbody input[type=checkbox]").first.check()
    page.get_by_role("button", name="Discard selected").click()
    assert page.get_by_role("status").inner_text() == "1 of 1 discarded."
    page.get_by_role("button", name="Discard all that match…").click()
    assert "1 would be discarded, which is final" in page.locator("#counted").inner_text()
    page.get_by_role("button", name="Discard 1").click()
    page.wait_for_url("**/operations/*")
    served.do(runs.operate_to_the_end)
    page.goto("/dead-letters?task=gone.task")
    assert "No dead letter fits" in page.locator("main").inner_text()


def test_an_open_execution_is_cancelled(visit: Visit, served: Served) -> None:
    served.api("POST", "/v1/jobs", json={"id": "open-one", "task": "t"})

    def come(world: Installation) -> str:
        runs.come(world)
        name = next(iter(world.services.view.executions("acme", "open-one", b"")))[1]
        runs.tell(world, name, 0.4, SCRIPT)
        return name

    name = served.do(come)
    page = visit.log_in().page
    page.goto(f"/executions/{name}")
    assert f"40 %: {SCRIPT}" in page.locator("main").inner_text()
    check_page(visit)
    page.locator("summary", has_text="Cancel").click()
    page.get_by_label("This cannot be taken back.").check()
    page.get_by_role("button", name="Cancel this execution").click()
    assert "cancelled" in page.get_by_role("status").inner_text()
