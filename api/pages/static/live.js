// The part of a page that follows what happens: told by server-sent events, asked for anew when it changed, and now and
// then, since ages grow. Paused or hidden, it asks for nothing at all.
(() => {
  "use strict";
  const live = document.getElementById("live");
  const button = document.getElementById("live-pause");
  const state = document.getElementById("live-state");
  if (!live || !button) return;
  const kinds = new Set(live.dataset.kinds.split(" "));
  const everyMs = Number(live.dataset.everyMs);
  const LEAST_MS = 1000;
  let isPaused = false;
  let source = null;
  let timer = null;
  let asking = null;
  let askedAt = 0;

  const isResting = () => isPaused || document.hidden;

  function say(text, tone) {
    if (state.textContent !== text) state.textContent = text;
    state.dataset.tone = tone;
  }

  // Asks for the part anew in `ms`, or sooner if that is due already.
  function plan(ms) {
    if (isResting()) return;
    const at = Math.max(performance.now() + ms, askedAt + LEAST_MS);
    if (timer && timer.at <= at) return;
    if (timer) clearTimeout(timer.id);
    timer = { at, id: setTimeout(ask, at - performance.now()) };
  }

  async function ask() {
    timer = null;
    askedAt = performance.now();
    asking = new AbortController();
    try {
      const answer = await fetch(live.dataset.live, { headers: { "HX-Request": "true" }, signal: asking.signal });
      if (answer.status === 401) return location.reload();
      const text = await answer.text();
      if (isResting()) return;
      if (answer.ok) {
        show(text);
        say("Live", "ok");
      } else {
        say(`Not answered (${answer.status}), trying again`, "bad");
      }
    } catch (error) {
      if (error.name !== "AbortError") say("Not reachable, trying again", "bad");
    } finally {
      asking = null;
    }
    plan(everyMs);
  }

  // Focus, caret, selection, scroll and open details stay; a chart is put in as it comes, and the bar that had the focus gets it.
  function show(text) {
    const bar = document.activeElement?.closest?.("svg.drawn a[id]")?.id;
    Idiomorph.morph(live, text, {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      restoreFocus: true,
      callbacks: {
        beforeAttributeUpdated: (name, node) => !(name === "open" && node.tagName === "DETAILS"),
        beforeNodeMorphed: (before, after) => {
          if (!before.matches?.("svg.drawn")) return true;
          if (before.outerHTML !== after.outerHTML) before.replaceWith(after.cloneNode(true));
          return false;
        },
      },
    });
    if (bar && document.activeElement?.id !== bar) document.getElementById(bar)?.focus({ preventScroll: true });
    live.dispatchEvent(new CustomEvent("htmx:afterSettle", { bubbles: true }));
  }

  function follow() {
    source = new EventSource(live.dataset.stream);
    source.addEventListener("changes", (event) => {
      if (JSON.parse(event.data).changes.some((change) => kinds.has(change.kind))) plan(0);
    });
    source.addEventListener("reset", () => plan(0));
    source.addEventListener("position", () => say("Live", "ok"));
  }

  function rest() {
    source?.close();
    source = null;
    if (timer) clearTimeout(timer.id);
    timer = null;
    asking?.abort();
  }

  function goOn() {
    follow();
    plan(0);
  }

  button.addEventListener("click", () => {
    isPaused = !isPaused;
    button.setAttribute("aria-pressed", String(isPaused));
    if (isPaused) {
      rest();
      say("Paused", "wait");
    } else {
      goOn();
    }
  });
  document.addEventListener("visibilitychange", () => {
    if (isPaused) return;
    if (document.hidden) rest();
    else goOn();
  });
  button.hidden = false;
  follow();
  plan(everyMs);
})();
