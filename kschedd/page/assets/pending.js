// Pending pods by cause; for a cause its pods, the nodes that each filter rejects, and remedies that were tried on a fork.

import { available, call, copying, duration, el, failure, frozen, funnel, number, plural, podLink, prose, rejectedBefore } from "./client.js";

export const TITLE = "Pending";
const MOST_PODS = 200;

export function open(root, [kind, namespace, name]) {
  const asked = name ? { kind, namespace, name } : null;
  const list = el("div");
  const answer = el("section");
  root.append(el("h1", { text: "Pending pods by cause" }), list, ...(frozen ? [] : [el("h2", { text: "Cause for one object" }), question(asked)]), asked ? answer : "");
  return {
    // an open cause is not replaced while it is read
    holds: () => asked !== null || list.querySelector("details[open]") !== null,
    refresh: async () => {
      if (asked) show(answer, asked);
      const groups = await call("causes.pending");
      if (!groups.length) {
        list.replaceChildren(el("section", {}, el("p", { class: "good", text: "No pod is pending." }), frozen ? "" : el("p", { class: "dim", text: "If a pod does not start, a rollout does not end, or a drain does not end, find the cause for that pod, workload or node below." })));
        return;
      }
      const opened = new Set([...list.querySelectorAll("details[open] > summary")].map((summary) => summary.textContent));
      const made = groups.map(group);
      list.replaceChildren(el("section", {}, made));
      for (const each of made) each.open = opened.has(each.firstChild.textContent);
    },
  };
}

/** Create a form that explains an object without pending pods, such as a rollout that does not end or a node to drain. */
function question(asked) {
  const object = el("input", { type: "search", size: 28, required: true, placeholder: "deployment/web", value: asked ? asked.kind + "/" + asked.name : "" });
  const namespace = el("input", { type: "text", size: 16, value: asked?.namespace || "default" });
  return el("form", {
    class: "row",
    onsubmit: (event) => {
      event.preventDefault();
      const words = object.value.trim().split("/");
      const [kind, name] = words.length > 1 ? words : ["pod", words[0]];
      if (name) location.hash = "#/pending/" + [kind, namespace.value.trim() || "default", name].map(encodeURIComponent).join("/");
    },
  }, el("label", {}, "workload, pod or node", object), el("label", {}, "namespace", namespace), el("button", { text: "Find the cause" }));
}

function group(found) {
  const workloads = found.workloads;
  const body = el("div");
  const missing = found.missing ? (found.count ? number(found.missing) : plural(found.missing, "pod")) + " not created" : "";
  const pods = [found.count || !missing ? plural(found.count, "pod") : "", missing].filter(Boolean).join(", ");
  const more = plural(workloads.length - 1, "more workload");
  const others = workloads.length > 1 ? " and " + (frozen && workloads.length === MOST_PODS ? "at least " : "") + more : "";
  const made = el("details", { ontoggle: () => { if (made.open && !body.childElementCount) fill(body, workloads, found.message); } },
    el("summary", {}, el("b", { text: nameOf(workloads[0]) + others + ", " + pods }), ": ", prose(found.message), " ",
      found.confidence === "likely" ? el("span", { class: "tag dim", text: "likely" }) : null),
    body);
  return made;
}

const nameOf = (workload) => workload.kind.toLowerCase() + "/" + workload.name + (workload.namespace ? " in " + workload.namespace : "");

function fill(body, workloads, message) {
  const detail = el("div");
  show(detail, workloads[0], message);
  if (workloads.length === 1) {
    body.replaceChildren(detail);
    return;
  }
  const choice = el("select", { onchange: () => show(detail, workloads[choice.value], message) },
    workloads.slice(0, MOST_PODS).map((workload, at) => el("option", { value: at, text: nameOf(workload) })));
  body.replaceChildren(el("div", { class: "row" }, el("label", {}, plural(workloads.length, "workload"), choice)), detail);
}

/** Show the answer about an object. `message`: the cause that is shown already. */
async function show(detail, workload, message) {
  const about = { kind: workload.kind, name: workload.name, ...(workload.namespace ? { namespace: workload.namespace } : {}) };
  if (!available("causes.explain", about)) {
    detail.replaceChildren(el("p", { class: "dim", text: "This report does not contain details about " + nameOf(workload) + "." }));
    return;
  }
  detail.replaceChildren(el("p", { class: "dim", text: "Reading ..." }));
  try {
    const found = await call("causes.explain", { ...about, remedies: false });
    const answer = el("div", {}, causes(found, message));
    const parts = [answer];
    if (found.examined && available("scheduler.explain", { pod: found.examined })) parts.push(await filters(found.examined));
    if (frozen) {
      detail.replaceChildren(...parts, ...tried(found));
      return;
    }
    // remedies reveal causes that take effect only after the first one is solved
    detail.replaceChildren(...parts, remedies(about, (tried) => answer.replaceChildren(...causes(tried, message))));
  } catch (fault) {
    detail.replaceChildren(failure(fault));
  }
}

function causes(found, message) {
  const line = (label, cause) => el("p", {}, el("b", { text: label }), prose(cause.message));
  const parts = [];
  if (found.workload.kind !== "Node") parts.push(el("p", { text: nameOf(found.workload) + ": " + number(found.scheduled) + " of " + plural(found.wanted, "pod") + " scheduled." }));
  if (found.cause) parts.push(found.cause.message === message ? "" : line("Cause: ", found.cause), evidence(found.cause));
  for (const also of found.also ?? []) parts.push(line("Also: ", also), evidence(also));
  return parts;
}

const evidence = (cause) => (cause.evidence.length ? el("ul", {}, cause.evidence.map((text) => el("li", {}, prose(text)))) : "");

async function filters(key) {
  const explanation = await call("scheduler.explain", { pod: key, summary: true });
  const made = el("div", {}, el("h2", {}, "Nodes that the filters leave for ", podLink(key)));
  const why = rejectedBefore(explanation);
  made.append(why ? el("p", { text: why }) : funnel(explanation));
  return made;
}

function remedies(about, found) {
  const box = el("div", { tabindex: -1 });
  const button = el("button", {
    type: "button",
    text: "Find remedies, and try each on a copy of the cluster",
    onclick: async () => {
      button.disabled = true;
      const began = performance.now();
      const progress = el("p", { class: "dim", role: "status", text: "Trying ..." });
      const timer = setInterval(() => { progress.textContent = "Trying ... " + duration((performance.now() - began) / 1000); }, 1000);
      box.replaceChildren(button, progress);
      try {
        const answer = await call("causes.explain", about);
        found(answer);
        box.replaceChildren(...tried(answer));
        if (document.activeElement === document.body) box.focus(); // the button had the focus
      } catch (fault) {
        button.disabled = false;
        box.replaceChildren(button, failure(fault));
      } finally {
        clearInterval(timer);
      }
    },
  });
  box.append(button);
  return box;
}

/** The remedies that were tried on a copy of the cluster, and the changes that did not help. */
function tried(answer) {
  const cards = answer.remedies.map(remedy);
  const failed = answer.tried.map((text) => el("li", { text }));
  return [
    ...(cards.length ? cards : [el("p", { text: "No remedy was found." })]),
    failed.length ? el("details", {}, el("summary", { text: plural(failed.length, "change") + " that did not help" }), el("ul", {}, failed)) : "",
  ];
}

function remedy(found) {
  const commands = found.commands.join("\n");
  const effect = "Tried on a copy of the cluster: " + found.scheduled + " pods scheduled, "
    + (found.displaced.length ? found.displaced.length + " displaced: " + found.displaced.join(", ") : "nothing else was displaced") + ".";
  return el("div", { class: "card" },
    el("h2", {}, "Remedy " + found.rank + ": ", prose(found.summary), " ", el("span", { class: "tag " + (found.verified ? "good" : "dim"), text: found.verified ? "verified" : "not verified" })),
    el("p", { text: effect }),
    found.manifest_diff ? el("details", {}, el("summary", { text: "change of the manifest" }), el("pre", { tabindex: 0, text: found.manifest_diff })) : null,
    el("div", { class: "row" }, copying(commands)), el("pre", { tabindex: 0, text: commands }));
}
