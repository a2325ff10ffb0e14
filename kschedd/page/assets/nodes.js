// Nodes as a heat map by zone: the share of a resource that is requested, now or at an earlier time of the log or the run.

import { amount, available, call, causeLink, el, failure, frozen, nodeLink, number, plural, podLink, table } from "./client.js";

export const TITLE = "Nodes";
const FULLEST = "the fullest resource";
const MOST_PODS = 500;
const CODES = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_"; // one for each 2 % of nodes.history
const LEVELS = ["--l0", "--l1", "--l2", "--l3", "--l4", "--l5", "--l6", "--l7", "--l8", "--l9", "--over"];

/** Return the color level of a share, as in the maps of a report: 0 for 0 %, 1 to 9 for up to 100 %, 10 for more. */
const level = (share) => (share > 0 ? Math.min(Math.ceil(+(share * 9).toFixed(6)), 10) : 0);

export function open(root, [wanted, moment]) {
  const canvas = el("canvas", { class: "map", tabindex: 0, role: "application", "aria-label": "Heat map of nodes. The arrow keys choose a node, Enter shows it." });
  const facts = el("p", { role: "status" });
  const detail = el("section", { "aria-live": "polite" }, el("p", { class: "dim", text: "Choose a node: click on it, or use the arrow keys." }));
  const resource = el("select", { onchange: () => draw() });
  const slider = el("input", { class: "time", type: "range", min: 0, max: 0, value: 0, "aria-label": "time of the map", oninput: () => { draw(); told(); } });
  const time = el("output");
  const past = el("label", { hidden: true }, "time", slider, time);
  const reading = el("button", { type: "button", text: "Read earlier times", onclick: () => readPast() });
  const moments = el("p", { role: "status" });
  const listing = el("div");
  const search = el("input", { type: "search", "aria-label": "name of a node", placeholder: "node", onchange: () => choose(search.value.trim()) });
  root.append(
    el("h1", { text: "Nodes" }),
    el("div", { class: "row" }, el("label", {}, "resource", resource), el("label", {}, "find", search), past, available("nodes.history") ? reading : ""),
    facts, moments,
    el("div", { class: "split" }, el("section", {}, canvas, legend()), detail),
    listing,
  );
  let usage = null; // the answer of nodes.usage
  let history = null; // the answer of nodes.history
  let places = []; // {x, y, size, index} of the drawn nodes
  let chosen = null; // name of a node
  let order = [];

  const columns = () => history?.columns.length ?? 0;
  const at = () => (history && Number(slider.value) < columns() ? Number(slider.value) : null); // column of time; null: now
  const resourceShown = () => resource.value || FULLEST;

  /** The nodes at the time of the slider: names, zones, shares and problems. */
  function shown() {
    if (at() === null) return present(usage, resourceShown());
    return earlier(history, at(), resourceShown());
  }

  async function readPast() {
    reading.disabled = true;
    try {
      history = await call("nodes.history");
      slider.max = columns();
      slider.value = moment === undefined ? columns() : Number(moment);
      past.hidden = false;
      reading.textContent = "Read the times again";
      reading.hidden = frozen;
      draw();
      told();
    } catch (fault) {
      moments.replaceChildren(failure(fault));
    }
    reading.disabled = false;
  }

  /** Show what happened in the column of time that the slider has chosen. */
  function told() {
    moments.replaceChildren();
    if (at() === null) return;
    const found = history.attempts[at()];
    const first = found.first.flatMap((each) => [" ", podLink(each.pod, each.attempt)]);
    moments.append("From " + history.columns[at()] + ": " + plural(found.attempts, "attempt") + ", " + number(found.placed) + " placed, " + number(found.failed) + " failed, " + plural(found.preempted, "pod") + " preempted.",
      ...(first.length ? [" The first:", ...first] : []),
      history.nodes.some((row) => row.length > 1) ? " Each color is the mean of neighboring nodes." : "");
  }

  function draw() {
    if (!usage) return;
    time.textContent = at() !== null ? history.columns[at()] : frozen ? "the end" : "now";
    const nodes = shown();
    const zones = new Map();
    nodes.names.forEach((_, index) => {
      const zone = nodes.zones[index] || "no zone";
      if (!zones.has(zone)) zones.set(zone, []);
      zones.get(zone).push(index);
    });
    const first = (a, b) => Boolean(nodes.problems[b]) - Boolean(nodes.problems[a]) || nodes.shares[b] - nodes.shares[a];
    for (const indexes of zones.values()) indexes.sort(first);
    paint(zones, nodes);
    facts.textContent = [plural(nodes.names.length, "node") + " in " + plural(zones.size, "zone"), ...counted(nodes)].join(", ") + ". In each zone, " + (at() === null ? "nodes with a problem come first, then the fullest nodes." : "the fullest nodes come first.");
    const fullest = nodes.names.map((_, index) => index).sort(first).slice(0, 10);
    const rows = at() === null
      ? fullest.map((index) => [nodeLink(usage.nodes[index]), usage.zones[index] || "none", usage.pods[index], percent(usage, "cpu", index), percent(usage, "memory", index), [nodes.problems[index], nodes.cordoned[index] ? "cordoned" : ""].filter(Boolean).join(", ")])
      : fullest.map((index) => [nodeLink(nodes.names[index]), nodes.zones[index] || "none", hundredths(nodes.shares[index])]);
    const heads = at() === null ? ["node", "zone", "pods", "cpu", "memory", "state"] : ["node", "zone", resourceShown()];
    listing.replaceChildren(el("section", {}, table(at() === null ? "The first ten nodes: with a problem, then the fullest" : "The ten fullest nodes", heads, rows)));
  }

  function paint(zones, nodes) {
    const style = getComputedStyle(document.documentElement);
    const colors = LEVELS.map((name) => style.getPropertyValue(name));
    const ink = style.getPropertyValue("--ink"), mark = style.getPropertyValue("--mark");
    const width = Math.max(canvas.parentElement.clientWidth - 30, 200);
    const count = nodes.names.length;
    const size = Math.max(4, Math.min(28, Math.floor(Math.sqrt((width * 420) / Math.max(count, 1)))));
    const columns = Math.max(1, Math.floor(width / size));
    let y = 0;
    places = [];
    order = [];
    const heads = [];
    for (const [zone, indexes] of [...zones].sort(([a], [b]) => (a < b ? -1 : 1))) {
      heads.push([zone + " (" + number(indexes.length) + ")", y]);
      y += 18;
      indexes.forEach((index, at) => {
        const place = { x: (at % columns) * size, y: y + Math.floor(at / columns) * size, size, index };
        places.push(place);
        order.push(index);
      });
      y += Math.ceil(indexes.length / columns) * size + 8;
    }
    const scale = window.devicePixelRatio || 1;
    canvas.width = width * scale;
    canvas.height = y * scale;
    canvas.style.height = y + "px";
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "13px system-ui, sans-serif";
    pen.fillStyle = ink;
    for (const [text, top] of heads) pen.fillText(text, 0, top + 13);
    const gap = size > 6 ? 1 : 0;
    for (const { x, y: top, index } of places) {
      const share = nodes.shares[index], problem = nodes.problems[index];
      pen.fillStyle = colors[problem ? 10 : level(share)];
      pen.fillRect(x, top, size - gap, size - gap);
      pen.strokeStyle = mark;
      pen.beginPath(); // a sign besides the color
      if (share > 1 || nodes.cordoned[index]) { pen.moveTo(x + 1, top + size - 2); pen.lineTo(x + size - 2, top + 1); }
      if (share > 1) { pen.moveTo(x + 1, top + 1); pen.lineTo(x + size - 2, top + size - 2); }
      if (problem) { pen.moveTo(x + 1, top + size / 2); pen.lineTo(x + size - 2, top + size / 2); }
      pen.stroke();
      if (nodes.names[index] === chosen) {
        pen.lineWidth = 2;
        pen.strokeStyle = mark;
        pen.strokeRect(x, top, size, size);
        pen.lineWidth = 1;
      }
    }
  }

  function choose(name) {
    chosen = name;
    draw();
    show();
  }

  /** Show the chosen node without its pods. */
  function outline() {
    const index = usage.nodes.indexOf(chosen);
    const then = at() === null ? "" : earlier(history, at(), resourceShown());
    const row = then ? then.names.indexOf(chosen) : -1;
    if (index < 0 && row < 0 && !history?.nodes.some((names) => names.includes(chosen))) {
      detail.replaceChildren(el("p", { class: "bad", text: "There is no node \"" + chosen + "\"." }));
      return false;
    }
    detail.replaceChildren(el("h2", { text: chosen }));
    if (row >= 0) detail.append(el("p", { text: history.columns[at()] + ": " + hundredths(then.shares[row]) + " of " + resourceShown() + " requested" }));
    if (index < 0) detail.append(el("p", { class: "dim", text: "The node was deleted later." }));
    else detail.append(el("p", {}, usage.conditions[index] ? el("b", { class: "bad", text: usage.conditions[index] }) : "ready", usage.cordoned[index] ? ", cordoned" : "",
      ...(available("causes.explain", { kind: "node", name: chosen }) ? [" · ", causeLink("node", "default", chosen)] : [])),
    el("p", { text: usage.taints[index] ? "taints: " + usage.taints[index] : "no taints" }), ...usageOf(usage, index));
    return index >= 0;
  }

  async function show() {
    const name = chosen, pods = { kind: "Pod", field_selector: "spec.nodeName=" + name, fields: ["status.phase"] };
    if (!outline() || !available("objects.list", pods)) return;
    try {
      const { items } = await call("objects.list", pods);
      if (chosen !== name) return;
      detail.append(
        el("h2", { text: plural(items.length, "pod") }),
        el("ul", {}, items.slice(0, MOST_PODS).map(({ metadata, status }) => {
          const phase = status?.phase ?? "Pending";
          return el("li", {}, podLink(metadata.namespace + "/" + metadata.name), phase === "Running" ? "" : " " + phase.toLowerCase());
        })),
        items.length > MOST_PODS ? el("p", { class: "dim", text: "and " + number(items.length - MOST_PODS) + " more" }) : "",
      );
    } catch (fault) {
      detail.append(failure(fault));
    }
  }

  const under = (event) => {
    const bounds = canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    const place = places.find((each) => x >= each.x && x < each.x + each.size && y >= each.y && y < each.y + each.size);
    return place && shown().names[place.index];
  };
  canvas.addEventListener("click", (event) => {
    const name = under(event);
    if (name) choose(name);
  });
  canvas.addEventListener("mousemove", (event) => { canvas.title = under(event) ?? ""; });
  canvas.addEventListener("keydown", (event) => {
    if (!usage || !order.length) return;
    const { names } = shown();
    const here = order.findIndex((index) => names[index] === chosen);
    const across = Math.max(1, Math.floor(canvas.clientWidth / (places[0]?.size ?? 1)));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: across, ArrowUp: -across }[event.key];
    if (step) {
      event.preventDefault();
      chosen = names[order[Math.min(Math.max(here + step, 0), order.length - 1)]];
      draw();
      if (outline()) detail.append(el("p", { class: "dim", text: "Enter shows its pods." }));
    } else if (event.key === "Enter" && chosen) show();
  });
  const resized = () => draw();
  addEventListener("resize", resized);

  return {
    close: () => removeEventListener("resize", resized),
    refresh: async () => {
      usage = await call("nodes.usage");
      const names = [FULLEST, ...Object.keys(usage.allocatable), "pods"];
      const before = resource.value;
      if (resource.options.length !== names.length) {
        resource.replaceChildren(...names.map((name) => el("option", { value: name, text: name })));
        if (names.includes(before)) resource.value = before;
      }
      if (!history && available("nodes.history") && (frozen || moment !== undefined)) await readPast();
      if (wanted && chosen === null) choose(wanted);
      else draw();
    },
  };
}

function legend() {
  const canvas = el("canvas", { width: 100, height: 8, "aria-hidden": "true" });
  const style = getComputedStyle(document.documentElement);
  const pen = canvas.getContext("2d");
  LEVELS.slice(0, 10).forEach((name, at) => { pen.fillStyle = style.getPropertyValue(name); pen.fillRect(at * 10, 0, 10, 8); });
  return el("p", { class: "legend" }, el("span", { text: "0 %" }), canvas, el("span", { text: "100 % requested; / cordoned, X overcommitted, — with a problem" }));
}

const hundredths = (share) => Math.round(100 * share) + "\u00a0%";

function present(usage, resource) {
  return { names: usage.nodes, zones: usage.zones, shares: sharesOf(usage, resource), pods: usage.pods, problems: usage.conditions, cordoned: usage.cordoned };
}

/** The nodes at an earlier time; nodes of one row share its mean. */
function earlier(history, column, resource) {
  const cells = history.shares[resource] ?? (resource === FULLEST ? Object.values(history.shares)[0] : undefined); // the only resource
  const names = [], zones = [], shares = [];
  history.nodes.forEach((row, at) => {
    const share = cells ? Math.max(CODES.indexOf(cells[at][column]), 0) / 50 : 0;
    for (const name of row) { names.push(name); zones.push(history.zones[at]); shares.push(share); }
  });
  return { names, zones, shares, problems: [], cordoned: [], unknown: !cells };
}

function counted({ shares, problems, cordoned, pods, unknown }) {
  const full = shares.filter((share) => share > 1).length;
  const bad = problems.filter(Boolean).length, unready = problems.filter((problem) => problem.includes("NotReady")).length;
  return [
    pods ? plural(pods.reduce((sum, count) => sum + count, 0), "pod") : "",
    pods ? number(cordoned.filter(Boolean).length) + " cordoned" : "",
    unready ? number(unready) + " not ready" : "",
    bad > unready ? number(bad - unready) + " with another problem" : "",
    full ? number(full) + " overcommitted" : "",
    unknown ? "earlier shares of this resource are unknown" : "",
  ].filter(Boolean);
}

/** The share of the resource that is requested, for each node. */
function sharesOf(usage, resource) {
  const of = (name) => (name === "pods" ? [usage.pods, usage.allowed_pods] : [usage.requested[name], usage.allocatable[name]]);
  const names = resource === FULLEST ? [...Object.keys(usage.requested), "pods"] : [resource];
  const shares = new Float64Array(usage.nodes.length);
  for (const name of names) {
    const [used, all] = of(name);
    if (!used || !all) continue;
    for (let at = 0; at < shares.length; at++) {
      const share = all[at] ? used[at] / all[at] : used[at] ? 2 : 0;
      if (share > shares[at]) shares[at] = share;
    }
  }
  return shares;
}

function percent(usage, name, index) {
  const all = usage.allocatable[name]?.[index], used = usage.requested[name]?.[index] ?? 0;
  return all ? hundredths(used / all) : "";
}

function usageOf(usage, index) {
  const rows = Object.entries(usage.allocatable).filter(([, values]) => values[index]).map(([name, values]) => {
    const used = usage.requested[name]?.[index] ?? 0;
    return [name, amount(name, used), amount(name, values[index]), percent(usage, name, index)];
  });
  rows.push(["pods", number(usage.pods[index]), number(usage.allowed_pods[index]), hundredths(usage.pods[index] / (usage.allowed_pods[index] || 1))]);
  return [el("p", { class: "dim", text: usage.zones[index] ? "zone " + usage.zones[index] : "no zone" }), table("Requested resources" + (frozen ? " at the end" : ""), ["resource", "requested", "allocatable", "share"], rows)];
}
