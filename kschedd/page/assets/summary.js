// The summary of a report, which is part of its file and readable without scripts; its maps lead to the view of the nodes.

import { call } from "./client.js";

export const TITLE = "Summary";
const made = document.getElementById("summary");

export function open(root, [part]) {
  root.append(made);
  return { refresh: async () => { await linked(); find(part); } };
}

/** Open and show the part with this id. */
export function find(id) {
  const target = id && document.getElementById(id);
  if (!target || !made.contains(target)) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  target.scrollIntoView();
}

/** Make each cell of a map lead to its node, at its time. */
async function linked() {
  const { columns, nodes } = await call("nodes.history");
  for (const cells of made.querySelectorAll(".cells:not(.live)")) {
    const timed = cells.dataset.map === "time";
    cells.classList.add("live");
    cells.addEventListener("click", (event) => {
      const box = cells.getBoundingClientRect();
      const down = (event.clientY - box.top) / box.height, across = (event.clientX - box.left) / box.width;
      const row = nodes[Math.floor(Math.min(timed ? down : across, 0.9999) * nodes.length)];
      const column = Math.floor(Math.min(across, 0.9999) * columns.length);
      location.hash = "#/nodes/" + encodeURIComponent(row[0]) + (timed ? "/" + column : "");
    });
  }
}
