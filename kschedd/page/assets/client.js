// Calls of the daemon's methods, and functions that create elements. All texts of the cluster are set as text, never as HTML.

export class CallError extends Error {
  constructor(code, message, data) {
    super(message);
    this.code = code;
    this.data = data;
  }
}

const stored = document.getElementById("kept");
const kept = stored && JSON.parse(stored.textContent); // by method: [the parameters that identify the answer, the answer]

/** Whether this is the file of a report, whose answers do not change, and not the page of a daemon. */
export const frozen = kept !== null;

function keptAnswer(method, params) {
  return (kept[method] ?? []).findLast(([of]) => Object.entries(of).every(([key, value]) => params[key] === undefined || params[key] === value));
}

/** Return whether a call can be answered: on the page of a daemon always, in a report if the file contains the answer. */
export const available = (method, params = {}) => !frozen || keptAnswer(method, params) !== undefined;

/** Call a method; `leaving`: the call must survive the end of the page. */
export async function call(method, params = {}, { signal, leaving = false } = {}) {
  if (frozen) {
    const found = keptAnswer(method, params);
    if (!found) throw new CallError("not_found", "This report does not contain " + (params.pod ?? params.name ?? "this answer") + ".");
    return found[1];
  }
  let response;
  try {
    response = await fetch("/web/call/" + method, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Kschedd-Page": "1" },
      body: JSON.stringify(params),
      keepalive: leaving,
      signal,
    });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new CallError("unreachable", "the daemon cannot be reached; the page retries every 2 seconds");
  }
  const answer = await response.json();
  if (answer.error) throw new CallError(answer.error.code, answer.error.message, answer.error.data);
  return answer.result;
}

/** Create an element. Keys of `props` that begin with "on" are listeners, others attributes; `text` is its text. */
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "text") made.textContent = value;
    else if (key === "value") made.value = value;
    else made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

export const number = (value) => value.toLocaleString("en-US");
export const plural = (count, word) => number(count) + " " + word + (count === 1 ? "" : "s");

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "";
  const units = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  const at = Math.max(units.findIndex(([, size]) => seconds >= size), 0);
  if (seconds < 1) return seconds <= 0 ? "0s" : seconds.toFixed(1) + "s";
  const [unit, size] = units[at];
  const rest = Math.floor((seconds % size) / (units[at + 1]?.[1] ?? 1));
  return Math.floor(seconds / size) + unit + (rest && units[at + 1] && seconds < 10 * size ? rest + units[at + 1][0] : "");
}

const BINARY = [["Ti", 2 ** 40], ["Gi", 2 ** 30], ["Mi", 2 ** 20], ["Ki", 2 ** 10]];

/** Return an amount of a resource as text, as the command line does (kschedd/api/amounts.py): rounded up. */
export function amount(resource, units) {
  if (resource === "cpu") return units % 1000 ? units + "m" : units / 1000 + "";
  const bytes = resource === "memory" || resource === "ephemeral-storage" || resource.startsWith("hugepages-");
  const [unit, size] = (bytes && BINARY.find(([, size]) => units >= size)) || ["", 1];
  return Math.ceil((units * 10) / size) / 10 + unit;
}

/** Return a name in camel case as parts between which a line may break. */
const breakable = (text) => text.split(/(?<=[a-z])(?=[A-Z])/).flatMap((part) => [el("wbr"), part]);

/** Create a table; a cell is a text, an element or a number, which is aligned to the right. `narrow`: heads may break. */
export function table(caption, heads, rows, { best, narrow } = {}) {
  const cell = (value, first) => {
    const numeric = typeof value === "number";
    const made = el(first ? "th" : "td", { class: numeric ? "n" : null, scope: first ? "row" : null });
    made.append(numeric ? number(value) : value ?? "");
    return made;
  };
  return el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": caption },
    el("table", {},
      el("caption", { text: caption }),
      el("thead", {}, el("tr", {}, heads.map((head, column) => el("th", { scope: "col", class: typeof rows[0]?.[column] === "number" ? "n" : null }, narrow ? breakable(head) : head)))),
      el("tbody", {}, rows.map((row, at) => el("tr", { class: at === best ? "best" : null }, row.map((value, column) => cell(value, column === 0))))),
    ),
  );
}

/** Return the address of the decision about a pod, or of one of its attempts; `key` is namespace/name. */
export const decisionAddress = (key, attempt) => "#/decision/" + [...key.split("/"), ...(attempt ? [attempt] : [])].map(encodeURIComponent).join("/");

export const podLink = (key, attempt) => el("a", { href: decisionAddress(key, attempt), text: key });

export const nodeLink = (name) => el("a", { href: "#/nodes/" + encodeURIComponent(name), text: name });

/** Link to the cause and remedies of an object; the namespace of a node is ignored. */
export const causeLink = (...names) => el("a", { href: "#/pending/" + names.map(encodeURIComponent).join("/"), text: "cause and remedies" });

/** Create a button that copies a text. */
export function copying(text) {
  const button = el("button", {
    type: "button",
    text: "copy the commands",
    onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = "copied";
      } catch {
        button.textContent = "select and copy it by hand";
      }
      setTimeout(() => { button.textContent = "copy the commands"; }, 2000);
    },
  });
  return button;
}

/** Return the text as children of an element, with code where the text has backticks. */
export function prose(text) {
  const parts = text.split("`");
  return parts.length % 2 ? parts.map((part, at) => (at % 2 ? el("code", { text: part }) : part)) : [text];
}

export const failure = (fault) => el("p", { class: "bad", role: "alert", text: fault.message });

/** Return why a pod is rejected before any node is evaluated; "" if it is not. */
export function rejectedBefore({ gated_by: gate, pre_filter: filter }) {
  if (gate) return "The pod is gated by " + gate.plugin + ": " + gate.reasons.join(", ");
  return filter ? filter.plugin + " rejects the pod before any node: " + filter.reasons.join(", ") : "";
}

/** The number of nodes that each filter plugin leaves, in the order of the plugins; one bar for each. */
export function funnel({ search, funnel: steps }) {
  const all = search.nodes;
  const row = (name, text, left, gone) => el("li", {}, el("span", { text: name }), el("span", { class: "n", text }), bar(all, left, gone));
  return el("ol", { class: "funnel" }, row("all nodes", number(all), all, 0),
    steps.map((step) => row(step.plugin, "-" + number(step.rejected) + ", " + number(step.left) + " left", step.left, step.rejected)));
}

function bar(all, left, lost) {
  const made = svg("svg", { class: "bar", viewBox: "0 0 100 1", preserveAspectRatio: "none", "aria-hidden": "true" });
  const width = (count) => (all ? (100 * count) / all : 0);
  made.append(
    svg("rect", { class: "of", x: 0, width: 100, height: 1 }),
    svg("rect", { class: "left", x: 0, width: width(left), height: 1 }),
    svg("rect", { class: "lost", x: width(left), width: width(lost), height: 1 }),
  );
  return made;
}
