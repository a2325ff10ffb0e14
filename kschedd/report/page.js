"use strict";
(() => {
  const data = JSON.parse(document.getElementById("cells").textContent);
  const panel = document.getElementById("panel");
  const line = (...parts) => {
    const p = document.createElement("p");
    p.append(...parts);
    return p;
  };
  const link = (text, target) => {
    const a = document.createElement("a");
    a.href = target;
    a.textContent = text;
    return a;
  };
  const share = (code) => {
    const at = data.codes.indexOf(code);
    return code === "." ? "not scored" : at === data.codes.length - 1 ? "more than " + 2 * at + " %" : "about " + 2 * at + " %";
  };
  const show = (...lines) => {
    const close = document.createElement("button");
    close.textContent = "close";
    close.onclick = () => { panel.hidden = true; };
    panel.replaceChildren(close, ...lines);
    panel.hidden = false;
  };
  const node = (row) => line(link(data.rows[row], "#g-" + row), data.zones[row] ? " in " + data.zones[row] : "");
  const overTime = (map) => ({
    rows: data.rows.length,
    columns: data.columns.length,
    tell: (row, column) => {
      const facts = data.facts[column];
      const first = data.first[column].flatMap((number) => [" ", link("#" + number, "#d-" + number)]);
      show(
        node(row),
        line(map.name + ": " + share(map.cells[row][column])),
        line(link("from " + data.columns[column], "#t-" + column), ": " + facts[0] + " attempts, " + facts[1] + " placed, " + facts[2] + " failed, " + facts[3] + " preempted"),
        ...(first.length ? [line("first decisions:", ...first)] : []),
      );
    },
  });
  const ofScores = (scores) => ({
    rows: scores.plugins.length,
    columns: data.rows.length,
    tell: (row, column) => show(node(column), line(scores.plugins[row] + ": " + share(scores.cells[column][row]) + " of the most it can give")),
  });
  const open = () => {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    target.scrollIntoView();
  };
  for (const cells of document.querySelectorAll(".cells")) {
    const about = cells.dataset.map === "scores" ? ofScores(data.scores) : overTime(data.maps[Number(cells.dataset.map)]);
    const mark = document.createElement("div");
    mark.className = "at";
    let row = 0, column = 0;
    const go = (toRow, toColumn) => {
      row = Math.min(Math.max(toRow, 0), about.rows - 1);
      column = Math.min(Math.max(toColumn, 0), about.columns - 1);
      mark.style.cssText = "left:" + 100 * column / about.columns + "%;top:" + 100 * row / about.rows + "%;width:" + 100 / about.columns + "%;height:" + 100 / about.rows + "%";
      cells.append(mark);
      about.tell(row, column);
    };
    cells.classList.add("live");
    cells.addEventListener("click", (event) => {
      const box = cells.getBoundingClientRect();
      go(Math.floor((event.clientY - box.top) / box.height * about.rows), Math.floor((event.clientX - box.left) / box.width * about.columns));
    });
    cells.addEventListener("keydown", (event) => {
      const by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Enter: [0, 0] }[event.key];
      if (!by) return;
      event.preventDefault();
      go(row + by[0], column + by[1]);
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") panel.hidden = true; });
  addEventListener("hashchange", open);
  open();
})();
