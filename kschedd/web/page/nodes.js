// Nodes as a heat map by zone: the share of a resource that is requested, over the time that this page has been open.

import { amount, call, causeLink, el, failure, number, plural, podLink, table } from "./client.js";

export const TITLE = "Nodes";
const FULLEST = "fullest resource";
const KEPT = 300; // snapshots for the scrubber
const MOST_PODS = 500;
const snapshots = []; // {at, usage}; kept while the page is open
const LEVELS = ["--l0", "--l1", "--l2", "--l3", "--l4", "--l5", "--l6", "--l7", "--l8", "--l9"];

export function open(root, [wanted]) {
  const canvas = el("canvas", { class: "map", tabindex: 0, role: "application", "aria-label": "Heat map of nodes. The arrow keys choose a node, Enter shows it." });
  const facts = el("p", { role: "status" });
  const detail = el("section", { "aria-live": "polite" }, el("p", { class: "dim", text: "Choose a node: click on it, or use the arrow keys." }));
  const resource = el("select", { onchange: () => draw() });
  const slider = el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "time of the map", oninput: () => { live = Number(slider.value) === snapshots.length - 1; draw(); } });
  const time = el("output");
  const listing = el("div");
  const search = el("input", { type: "search", "aria-label": "name of a node", placeholder: "node", onchange: () => choose(search.value.trim()) });
  root.append(
    el("h1", { text: "Nodes" }),
    el("div", { class: "row" }, el("label", {}, "resource", resource), el("label", {}, "time", slider, time), el("label", {}, "find", search)),
    facts,
    el("div", { class: "split" }, el("section", {}, canvas, legend()), detail),
    listing,
  );
  let places = []; // {x, y, size, index} of the drawn nodes
  let chosen = null; // name of a node
  let live = true;
  let order = [];

  const current = () => snapshots[live ? snapshots.length - 1 : Math.min(Number(slider.value), snapshots.length - 1)];

  function draw() {
    const snapshot = current();
    if (!snapshot) return;
    const { usage, at } = snapshot;
    if (live) slider.value = snapshots.length - 1;
    time.textContent = live ? "now" : at.toLocaleTimeString();
    const shares = sharesOf(usage, resource.value || FULLEST);
    const zones = new Map();
    usage.nodes.forEach((_, index) => {
      const zone = usage.zones[index] || "no zone";
      if (!zones.has(zone)) zones.set(zone, []);
      zones.get(zone).push(index);
    });
    for (const indexes of zones.values()) indexes.sort((a, b) => shares[b] - shares[a]);
    paint(zones, shares, usage);
    const full = shares.filter((share) => share > 1).length;
    facts.textContent = plural(usage.nodes.length, "node") + " in " + plural(zones.size, "zone") + ", " + plural(usage.pods.reduce((sum, count) => sum + count, 0), "pod")
      + ", " + number(usage.cordoned.filter(Boolean).length) + " cordoned" + (full ? ", " + number(full) + " overcommitted" : "") + ". The fullest nodes come first in each zone.";
    const fullest = usage.nodes.map((_, index) => index).sort((a, b) => shares[b] - shares[a]).slice(0, 10);
    listing.replaceChildren(el("section", {}, table("The ten fullest nodes", ["node", "zone", "pods", "cpu", "memory", "state"], fullest.map((index) => [
      el("a", { href: "#/nodes/" + encodeURIComponent(usage.nodes[index]), text: usage.nodes[index] }), usage.zones[index] || "none", usage.pods[index],
      percent(usage, "cpu", index), percent(usage, "memory", index), usage.cordoned[index] ? "cordoned" : "",
    ]))));
  }

  function paint(zones, shares, usage) {
    const style = getComputedStyle(document.documentElement);
    const colors = LEVELS.map((name) => style.getPropertyValue(name));
    const over = style.getPropertyValue("--over"), ink = style.getPropertyValue("--ink"), mark = style.getPropertyValue("--mark");
    const width = Math.max(canvas.parentElement.clientWidth - 30, 200);
    const count = usage.nodes.length;
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
      const share = shares[index];
      pen.fillStyle = share > 1 ? over : colors[Math.min(9, Math.floor(share * 10))];
      pen.fillRect(x, top, size - gap, size - gap);
      if (share > 1 || usage.cordoned[index]) { // a sign besides the color
        pen.strokeStyle = mark;
        pen.beginPath();
        pen.moveTo(x + 1, top + size - 2);
        pen.lineTo(x + size - 2, top + 1);
        if (share > 1) { pen.moveTo(x + 1, top + 1); pen.lineTo(x + size - 2, top + size - 2); }
        pen.stroke();
      }
      if (usage.nodes[index] === chosen) {
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

  async function show() {
    const { usage } = current();
    const index = usage.nodes.indexOf(chosen);
    if (index < 0) {
      detail.replaceChildren(el("p", { class: "bad", text: "There is no node \"" + chosen + "\"." }));
      return;
    }
    const name = chosen;
    detail.replaceChildren(el("h2", { text: name }), ...usageOf(usage, index), el("p", { class: "dim", text: "Reading the node ..." }));
    try {
      const [{ object }, pods] = await Promise.all([
        call("objects.get", { kind: "Node", name }),
        call("objects.list", { kind: "Pod", field_selector: "spec.nodeName=" + name, fields: ["status.phase"] }),
      ]);
      if (chosen !== name) return;
      const taints = object.spec.taints ?? [];
      const conditions = (object.status.conditions ?? []).filter((each) => (each.type === "Ready") !== (each.status === "True"));
      const listed = pods.items.map((pod) => [pod.metadata.namespace + "/" + pod.metadata.name, pod.status?.phase ?? "Pending"]);
      detail.lastChild.remove();
      detail.append(
        el("p", {}, conditions.length ? el("b", { class: "bad", text: conditions.map((each) => (each.type === "Ready" ? "not ready" : each.type)).join(", ") }) : "ready",
          object.spec.unschedulable ? ", cordoned" : "", " · ", causeLink("node", "default", name)),
        el("p", { text: taints.length ? "taints: " + taints.map((taint) => taint.key + (taint.value ? "=" + taint.value : "") + ":" + taint.effect).join(", ") : "no taints" }),
        el("h2", { text: plural(listed.length, "pod") }),
        el("ul", {}, listed.slice(0, MOST_PODS).map(([key, phase]) => el("li", {}, podLink(key), phase === "Running" ? "" : " " + phase.toLowerCase()))),
        listed.length > MOST_PODS ? el("p", { class: "dim", text: "and " + number(listed.length - MOST_PODS) + " more" }) : "",
      );
    } catch (fault) {
      detail.append(failure(fault));
    }
  }

  const at = (event) => {
    const bounds = canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left, y = event.clientY - bounds.top;
    return places.find((place) => x >= place.x && x < place.x + place.size && y >= place.y && y < place.y + place.size);
  };
  canvas.addEventListener("click", (event) => {
    const place = at(event);
    if (place) choose(current().usage.nodes[place.index]);
  });
  canvas.addEventListener("mousemove", (event) => {
    const place = at(event);
    const { usage } = current() ?? {};
    canvas.title = place && usage ? usage.nodes[place.index] : "";
  });
  canvas.addEventListener("keydown", (event) => {
    const { usage } = current() ?? {};
    if (!usage || !order.length) return;
    const here = order.findIndex((index) => usage.nodes[index] === chosen);
    const columns = Math.max(1, Math.floor(canvas.clientWidth / (places[0]?.size ?? 1)));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (step) {
      event.preventDefault();
      chosen = usage.nodes[order[Math.min(Math.max(here + step, 0), order.length - 1)]];
      draw();
      const index = usage.nodes.indexOf(chosen);
      detail.replaceChildren(el("h2", { text: chosen }), ...usageOf(usage, index), el("p", { class: "dim", text: "Enter shows its pods." }));
    } else if (event.key === "Enter" && chosen) show();
  });
  const resized = () => draw();
  addEventListener("resize", resized);

  return {
    close: () => removeEventListener("resize", resized),
    refresh: async () => {
      const usage = await call("nodes.usage");
      snapshots.push({ at: new Date(), usage });
      if (snapshots.length > KEPT) snapshots.shift();
      slider.max = snapshots.length - 1;
      const names = [FULLEST, ...Object.keys(usage.allocatable), "pods"];
      const before = resource.value;
      if (resource.options.length !== names.length) {
        resource.replaceChildren(...names.map((name) => el("option", { value: name, text: name })));
        if (names.includes(before)) resource.value = before;
      }
      if (wanted && chosen === null) choose(wanted);
      else draw();
    },
  };
}

function legend() {
  const canvas = el("canvas", { width: 100, height: 8, "aria-hidden": "true" });
  const style = getComputedStyle(document.documentElement);
  const pen = canvas.getContext("2d");
  LEVELS.forEach((name, at) => { pen.fillStyle = style.getPropertyValue(name); pen.fillRect(at * 10, 0, 10, 8); });
  return el("p", { class: "legend" }, el("span", { text: "0 %" }), canvas, el("span", { text: "100 % requested; / cordoned, X overcommitted" }));
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
  return all ? Math.round((100 * used) / all) + "\u00a0%" : "";
}

function usageOf(usage, index) {
  const rows = Object.entries(usage.allocatable).filter(([, values]) => values[index]).map(([name, values]) => {
    const used = usage.requested[name]?.[index] ?? 0;
    return [name, amount(name, used), amount(name, values[index]), percent(usage, name, index)];
  });
  rows.push(["pods", number(usage.pods[index]), number(usage.allowed_pods[index]), Math.round((100 * usage.pods[index]) / (usage.allowed_pods[index] || 1)) + "\u00a0%"]);
  return [el("p", { class: "dim", text: usage.zones[index] ? "zone " + usage.zones[index] : "no zone" }), table("Requested resources", ["resource", "requested", "allocatable", "share"], rows)];
}
