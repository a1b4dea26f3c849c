"use strict";
// The page is whole without this: it adds a filter, folding, and opens what a link or the printer asks for.
(() => {
  const all = (selector) => Array.from(document.querySelectorAll(selector));
  const form = document.getElementById("filters");
  const folds = all("details");
  const setOpen = (open) => { for (const each of folds) each.open = open; };

  const folding = document.getElementById("folding");
  if (folds.length) folding.hidden = false;
  document.getElementById("open-all").addEventListener("click", () => setOpen(true));
  document.getElementById("fold-all").addEventListener("click", () => setOpen(false));

  let before = null;
  addEventListener("beforeprint", () => { before = folds.map((each) => each.open); setOpen(true); });
  addEventListener("afterprint", () => { folds.forEach((each, number) => { each.open = before[number]; }); });

  const follow = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target || !target.matches(".claim, details")) return;
    for (const each of [target, ...target.querySelectorAll("details")]) if (each.matches("details")) each.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();

  if (!form) return;
  const find = document.getElementById("find");
  const column = document.getElementById("column");
  const found = document.getElementById("found");
  const rows = all(".board tbody tr").map((row) => ({
    row,
    claim: document.getElementById(row.dataset.claim),
    text: row.querySelector("th").textContent.toLowerCase(),
    cells: Array.from(row.querySelectorAll("td"), (cell) => [cell.dataset.column, cell.dataset.status]),
  }));
  const filter = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(all("#filters input:checked").map((each) => each.value));
    let count = 0;
    for (const { row, claim, text, cells } of rows) {
      const here = cells.filter(([name]) => !column.value || name === column.value);
      const fits = words.every((word) => text.includes(word))
        && (wanted.size === 0 || here.some(([, status]) => wanted.has(status)));
      row.hidden = !fits;
      if (claim) claim.hidden = !fits;
      count += fits ? 1 : 0;
    }
    found.textContent = count === rows.length ? `${count} claims` : `${count} of ${rows.length} claims`;
  };
  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("submit", (event) => event.preventDefault());
  filter();
})();
