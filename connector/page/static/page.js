// Comfort for those who have scripts: every screen works without.
"use strict";

document.documentElement.classList.add("scripted");

// A file that is dropped anywhere on the page is taken as if it had been chosen. Without this the browser opens it.
const drop = document.querySelector(".drop");
for (const name of ["dragover", "dragleave", "drop"]) {
  document.addEventListener(name, (event) => {
    if (!event.dataTransfer?.types.includes("Files")) return;
    event.preventDefault();
    if (!drop) return;
    drop.classList.toggle("over", name === "dragover");
    if (name !== "drop" || !event.dataTransfer.files.length) return;
    const input = drop.querySelector("input");
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

// The first form: its faults are reported at their fields, before a file is sent.
if (drop) {
  const input = drop.querySelector("input");
  const { form } = input;
  const check = () => {
    const [file] = input.files;
    const isMissing = !file && !form.elements.pasted.value.trim();
    const isLarge = file && file.size > Number(drop.dataset.bytes);
    input.setCustomValidity(isMissing ? drop.dataset.none : isLarge ? drop.dataset.large : "");
  };
  check();
  for (const name of ["change", "input"]) form.addEventListener(name, check);
  // A choice that is hidden for the resource is not kept.
  form.addEventListener("change", () => {
    const [create] = form.elements.mode;
    const chosen = [...form.elements.mode].find((each) => each.checked);
    if (chosen && !chosen.checkVisibility()) create.checked = true;
  });
}

// A screen that waits shows its progress until the server leads on; it survives a server that is away.
const waiting = document.querySelector("[data-poll]");
if (waiting) {
  const notify = document.getElementById("notify");
  const POLL_MILLISECONDS = 1000;

  const leadOn = (address, heading) => {
    if (notify?.checked) new Notification(notify.dataset.title, { body: heading });
    location.replace(address);
  };

  const poll = async () => {
    try {
      const answer = await fetch(location.href, { headers: { "X-Part": "poll" } });
      const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = shown.querySelector("[data-poll]");
      if (!fresh) return leadOn(answer.url, shown.querySelector("h1")?.textContent ?? "");
      const bar = fresh.querySelector("progress");
      const before = waiting.querySelector("progress");
      if (bar && before && bar.value < before.value) bar.value = before.value;
      waiting.replaceChildren(...fresh.childNodes);
    } catch {
      waiting.querySelector("[role=status]").textContent = waiting.dataset.lost;
    }
    setTimeout(poll, POLL_MILLISECONDS);
  };
  setTimeout(poll, POLL_MILLISECONDS);

  notify?.addEventListener("change", async () => {
    if (!notify.checked || (await Notification.requestPermission()) === "granted") return;
    notify.checked = false;
    notify.disabled = true;
    notify.parentElement.append(` ${notify.dataset.denied}`);
  });
}

const isEdited = (field) => {
  if (field.tagName === "SELECT") return field.selectedIndex !== Math.max(0, [...field.options].findIndex((each) => each.defaultSelected));
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  return field.type !== "hidden" && field.value !== field.defaultValue;
};

// The browser asks before it leaves answers that were not sent.
for (const form of document.querySelectorAll("form[data-ask]")) {
  let isSubmitted = false;
  form.addEventListener("submit", () => (isSubmitted = true));
  addEventListener("beforeunload", (event) => {
    if (!isSubmitted && [...form.elements].some(isEdited)) event.preventDefault();
  });
}

// What happens to a value that a field has already is shown as soon as the field is chosen.
for (const label of document.querySelectorAll(".columns .policy")) {
  const field = label.parentElement.querySelector("select");
  const policy = label.querySelector("select");
  const show = () => {
    const chosen = field.selectedOptions[0];
    label.hidden = !chosen || ["", "-"].includes(chosen.value);
    policy.querySelector("[value=append]").disabled = !chosen?.hasAttribute("data-long");
  };
  field.addEventListener("change", () => {
    policy.value = field.selectedOptions[0]?.hasAttribute("data-long") ? "fill" : "overwrite";
    show();
  });
  show();
}

// The grid: the rows whose cells were changed are checked together, one request after another. Nothing leaves the
// page before its cells are saved.
for (const grid of document.querySelectorAll("form[data-grid]")) {
  const address = grid.getAttribute("action") || location.pathname;
  const changed = new Set();
  let saving = null;
  let isSubmitted = false;

  const fieldsOf = (row) => [...row.querySelectorAll("input, select")].filter((each) => each.name);
  const cellsOf = (rows) => {
    const data = new FormData();
    for (const name of ["form_key", "version", "kind"]) data.append(name, grid.elements[name].value);
    for (const row of rows) {
      for (const field of fieldsOf(row)) if (!["checkbox", "radio"].includes(field.type) || field.checked) data.append(field.name, field.value);
    }
    return data;
  };

  // The fresh row has what was typed since the old one was sent.
  const replaceRow = (row, fresh, sent) => {
    const focused = row.contains(document.activeElement) ? document.activeElement : null;
    for (const field of fieldsOf(row)) {
      const twin = field.id && fresh.querySelector(`#${field.id}`);
      if (twin && !["checkbox", "radio"].includes(field.type) && field.value !== sent.get(field.name)) {
        twin.value = field.value;
        changed.add(row.dataset.row);
      }
    }
    const selection = focused?.matches("input:not([type=checkbox], [type=radio])") ? [focused.selectionStart, focused.selectionEnd] : null;
    row.replaceWith(fresh);
    const twin = focused?.id && document.getElementById(focused.id);
    if (twin) {
      twin.focus();
      if (selection) twin.setSelectionRange(...selection);
    }
  };

  const alertOf = (content) => {
    const box = grid.querySelector(".unsaved") || document.createElement("div");
    box.className = "alert unsaved";
    box.setAttribute("role", "alert");
    box.replaceChildren(...content);
    grid.prepend(box);
  };

  const save = async (rows) => {
    const sent = cellsOf(rows);
    let shown;
    try {
      const answer = await fetch(address, { method: "POST", body: sent, headers: { "X-Part": "rows" }, keepalive: true });
      shown = new DOMParser().parseFromString(await answer.text(), "text/html");
    } catch {
      alertOf([grid.dataset.unsaved]);
      return false;
    }
    const part = shown.querySelector("[data-version]");
    if (!part) {
      alertOf(shown.querySelectorAll("main p"));
      return false;
    }
    grid.querySelector(".unsaved")?.remove();
    grid.elements.version.value = part.dataset.version;
    document.querySelector("nav.kinds").replaceWith(part.querySelector("nav.kinds"));
    for (const fresh of part.querySelectorAll(".row")) {
      const row = grid.querySelector(`.row[data-row="${fresh.dataset.row}"]`);
      if (row) replaceRow(row, fresh, sent);
    }
    return true;
  };

  const saveAll = async () => {
    while (changed.size) {
      const rows = [...changed].map((number) => grid.querySelector(`.row[data-row="${number}"]`)).filter(Boolean);
      const numbers = [...changed];
      changed.clear();
      if (!(await save(rows))) {
        for (const number of numbers) changed.add(number);
        return false;
      }
    }
    return true;
  };

  const flush = () => (saving ??= saveAll().finally(() => (saving = null)));

  grid.addEventListener("change", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    changed.add(row.dataset.row);
    flush();
  });

  // Cells may be typed before this script runs.
  for (const row of grid.querySelectorAll(".row")) if (fieldsOf(row).some(isEdited)) changed.add(row.dataset.row);
  if (changed.size) flush();

  const isOpen = (row) => changed.has(row.dataset.row) || fieldsOf(row).some(isEdited);

  grid.addEventListener("submit", async (event) => {
    isSubmitted = !saving && !changed.size;
    if (isSubmitted) {
      // Other cells may show what a second tab has changed since.
      for (const row of grid.querySelectorAll(".row")) for (const field of fieldsOf(row)) field.disabled = !isOpen(row);
      return;
    }
    event.preventDefault();
    if (await (saving ?? flush())) grid.requestSubmit(event.submitter);
  });

  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a[href]");
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || (!saving && !changed.size)) return;
    event.preventDefault();
    if (await flush()) link.click();
  });

  // The tab is closed, or the browser goes back: what was typed is sent behind it.
  const saveLate = () => {
    const rows = [...grid.querySelectorAll(".row")].filter(isOpen);
    if (!rows.length || isSubmitted) return;
    const data = cellsOf(rows);
    data.append("late", "on");
    isSubmitted = navigator.sendBeacon(address, data);
  };
  addEventListener("beforeunload", saveLate);
  addEventListener("pagehide", saveLate);
  grid.addEventListener("input", () => (isSubmitted = false));

  const inColumn = (input) =>
    [...grid.querySelectorAll(".cell input")].filter((each) => each.name.split(":")[2] === input.name.split(":")[2]);

  grid.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Enter: 1 }[event.key];
    if (!step || !event.target.matches(".cell input")) return;
    event.preventDefault();
    const column = inColumn(event.target);
    const next = column[column.indexOf(event.target) + step];
    if (next) next.focus();
    else event.target.dispatchEvent(new Event("change", { bubbles: true }));
  });

  // Several lines that are pasted fill the rows below as well.
  grid.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text").replace(/\r?\n$/, "");
    if (!event.target.matches(".cell input") || !/\n/.test(text)) return;
    event.preventDefault();
    const column = inColumn(event.target);
    const first = column.indexOf(event.target);
    text.split(/\r?\n/).forEach((line, place) => {
      const field = column[first + place];
      if (!field) return;
      field.value = line;
      changed.add(field.closest(".row").dataset.row);
    });
    flush();
  });
}
