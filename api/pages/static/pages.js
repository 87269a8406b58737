// Keys, theme, help, copying, local times, ticks of a whole table. Everything works without it, but for these.
(() => {
  "use strict";
  const root = document.documentElement;
  const prefix = document.body.dataset.prefix || "";

  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]") !== null;

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (document.querySelector("dialog[open]")) return;
    const filter = document.getElementById("filter");
    if (event.key === "/" && filter) {
      event.preventDefault();
      filter.focus();
      filter.select();
    } else if (event.key === "?") {
      openHelp();
    }
  });

  function openHelp() {
    const help = document.getElementById("help");
    if (help) help.showModal();
  }

  function turnTheme() {
    const order = ["", "light", "dark"];
    const next = order[(order.indexOf(root.dataset.theme || "") + 1) % order.length];
    if (next) root.dataset.theme = next;
    else delete root.dataset.theme;
    const age = next ? 31536000 : 0;
    document.cookie = `minutebook_theme=${next}; path=${prefix || "/"}; max-age=${age}; samesite=strict`;
    document.getElementById("theme-now").textContent = `: ${next || "as the system"}`;
  }

  async function copy(button) {
    const text = button.dataset.copy;
    let done = false;
    if (window.isSecureContext && navigator.clipboard) {
      done = await navigator.clipboard.writeText(text).then(() => true, () => false);
    }
    if (!done) {
      // Over plain HTTP there is no clipboard but this.
      const area = document.createElement("textarea");
      area.value = text;
      area.className = "visually-hidden";
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      button.focus();
    }
    button.textContent = done ? "Copied" : "Not copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  }

  function showLocalTimes(part) {
    for (const time of part.querySelectorAll("time[datetime]:not([title])")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.getTime())) {
        time.title = `${at.toLocaleString()} (${Intl.DateTimeFormat().resolvedOptions().timeZone})`;
      }
    }
  }

  function tickAll(all) {
    for (const box of all.form.querySelectorAll("input[type=checkbox][name=id]")) box.checked = all.checked;
    countTicked(all.form);
  }

  function countTicked(form) {
    const boxes = [...form.querySelectorAll("input[type=checkbox][name=id]")];
    const ticked = boxes.filter((box) => box.checked).length;
    for (const shown of form.querySelectorAll("[data-ticked]")) shown.textContent = `${ticked} selected`;
    for (const all of form.querySelectorAll("[data-tick-all]")) {
      all.checked = ticked > 0 && ticked === boxes.length;
      all.indeterminate = ticked > 0 && ticked < boxes.length;
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button?.id === "help-open") openHelp();
    else if (button?.id === "theme") turnTheme();
    else if (button?.dataset.copy !== undefined) copy(button);
    else if (!event.target.closest("details.action")) closeActions();
  });

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeActions();
  });

  function closeActions() {
    for (const open of document.querySelectorAll("details.action[open]")) {
      if (open.contains(document.activeElement)) open.querySelector("summary").focus();
      open.open = false;
    }
  }

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-tick-all]")) tickAll(event.target);
    else if (event.target.matches("input[type=checkbox][name=id]")) countTicked(event.target.form);
  });

  // On a narrow window the navigation is one line that scrolls: what is shown stands in it.
  const current = document.querySelector(".side [aria-current]");
  if (current) {
    const side = current.closest(".side");
    side.scrollLeft = current.offsetLeft - (side.clientWidth - current.offsetWidth) / 2;
  }

  document.addEventListener("DOMContentLoaded", () => showLocalTimes(document));
  document.addEventListener("htmx:afterSettle", (event) => showLocalTimes(event.target));
  showLocalTimes(document);
  for (const form of document.querySelectorAll("form")) if (form.querySelector("[data-ticked]")) countTicked(form);
})();
