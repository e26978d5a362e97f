// Comfort for those who have scripts: every screen works without.
"use strict";

document.documentElement.classList.add("scripted");

// A file that is dropped anywhere in the box is taken as if it had been chosen.
for (const drop of document.querySelectorAll(".drop")) {
  const input = drop.querySelector("input");
  for (const name of ["dragover", "dragleave", "drop"]) {
    drop.addEventListener(name, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", name === "dragover");
      if (name === "drop" && event.dataTransfer.files.length) input.files = event.dataTransfer.files;
    });
  }
}

// The grid: a row is checked as soon as one of its cells was changed.
for (const grid of document.querySelectorAll("form[data-grid]")) {
  let last = Promise.resolve();

  const check = async (row) => {
    const number = row.dataset.row;
    const data = new FormData();
    for (const [name, value] of new FormData(grid)) {
      if (["form_key", "version", "kind"].includes(name) || name.split(":")[1] === number) data.append(name, value);
    }
    const answer = await fetch(grid.getAttribute("action") || location.pathname, {
      method: "POST", body: data, headers: { "X-Part": "row" },
    });
    const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = shown.querySelector("[data-version]");
    if (!answer.ok || !part) {
      grid.requestSubmit();
      return;
    }
    grid.elements.version.value = part.dataset.version;
    const fresh = part.querySelector(".row");
    const focused = document.activeElement && row.contains(document.activeElement) ? document.activeElement.id : "";
    row.replaceWith(fresh);
    if (focused) document.getElementById(focused)?.focus();
  };

  grid.addEventListener("change", (event) => {
    const row = event.target.closest(".row");
    if (row) last = last.then(() => check(row));
  });

  const fields = (input) =>
    [...grid.querySelectorAll(".cell input")].filter((each) => each.name.split(":")[2] === input.name.split(":")[2]);

  grid.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Enter: 1 }[event.key];
    if (!step || !event.target.matches(".cell input")) return;
    event.preventDefault();
    const column = fields(event.target);
    const next = column[column.indexOf(event.target) + step];
    if (next) next.focus();
    else event.target.dispatchEvent(new Event("change", { bubbles: true }));
  });

  // Several lines that are pasted fill the rows below as well.
  grid.addEventListener("paste", (event) => {
    const text = event.clipboardData.getData("text").replace(/\r?\n$/, "");
    if (!event.target.matches(".cell input") || !/\n/.test(text)) return;
    event.preventDefault();
    const column = fields(event.target);
    const first = column.indexOf(event.target);
    text.split(/\r?\n/).forEach((line, place) => {
      if (column[first + place]) column[first + place].value = line;
    });
    grid.requestSubmit();
  });
}
