// Pending pods by cause; for a cause its pods, the nodes that each filter rejects, and remedies that were tried on a fork.

import { call, copying, duration, el, failure, funnel, number, plural, podLink } from "./client.js";

export const TITLE = "Pending";
const MOST_PODS = 200;

export function open(root) {
  const list = el("div");
  root.append(el("h1", { text: "Pending pods by cause" }), list);
  return {
    // an open cause is not replaced while it is read
    holds: () => list.querySelector("details[open]") !== null,
    refresh: async () => {
      const groups = await call("causes.pending");
      if (!groups.length) {
        list.replaceChildren(el("section", {}, el("p", { class: "good", text: "No pod is pending." })));
        return;
      }
      list.replaceChildren(el("section", {}, groups.map(group)));
    },
  };
}

function group(found) {
  const workloads = found.workloads;
  const body = el("div");
  const missing = found.missing ? ", " + number(found.missing) + " not created" : "";
  const made = el("details", { ontoggle: () => { if (made.open && !body.childElementCount) fill(body, workloads); } },
    el("summary", {}, el("b", { text: plural(found.count, "pod") + missing }), ": " + found.message + " ",
      found.confidence === "likely" ? el("span", { class: "tag dim", text: "likely" }) : null),
    body);
  return made;
}

const nameOf = (workload) => workload.kind.toLowerCase() + "/" + workload.name + (workload.namespace ? " in " + workload.namespace : "");

function fill(body, workloads) {
  const detail = el("div");
  const choice = el("select", { onchange: () => show(detail, workloads[choice.value]) },
    workloads.slice(0, MOST_PODS).map((workload, at) => el("option", { value: at, text: nameOf(workload) })));
  body.replaceChildren(el("div", { class: "row" }, el("label", {}, workloads.length === 1 ? "workload" : plural(workloads.length, "workload"), choice)), detail);
  show(detail, workloads[0]);
}

async function show(detail, workload) {
  const about = { kind: workload.kind, name: workload.name, ...(workload.namespace ? { namespace: workload.namespace } : {}) };
  detail.replaceChildren(el("p", { class: "dim", text: "Reading ..." }));
  try {
    const found = await call("causes.explain", { ...about, remedies: false });
    const parts = [];
    parts.push(el("p", { text: nameOf(workload) + ": " + number(found.scheduled) + " of " + plural(found.wanted, "pod") + " scheduled." }));
    if (found.cause) parts.push(el("p", {}, el("b", { text: "Cause: " }), found.cause.message), evidence(found.cause));
    for (const also of found.also ?? []) parts.push(el("p", {}, el("b", { text: "Also: " }), also.message), evidence(also));
    detail.replaceChildren(...parts);
    if (found.examined) detail.append(await filters(found.examined));
    detail.append(remedies(about));
  } catch (fault) {
    detail.replaceChildren(failure(fault));
  }
}

const evidence = (cause) => el("ul", {}, cause.evidence.map((text) => el("li", { text })));

async function filters(key) {
  const explanation = await call("scheduler.explain", { pod: key });
  const made = el("div", {}, el("h2", {}, "Nodes that the filters leave for ", podLink(key)));
  if (explanation.gated_by) made.append(el("p", { text: "The pod is gated by " + explanation.gated_by.plugin + ": " + explanation.gated_by.reasons.join(", ") }));
  else if (explanation.pre_filter) made.append(el("p", { text: explanation.pre_filter.plugin + " rejects the pod before any node: " + explanation.pre_filter.reasons.join(", ") }));
  else made.append(funnel(explanation));
  return made;
}

function remedies(about) {
  const box = el("div");
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
        const found = await call("causes.explain", about);
        const cards = found.remedies.map(remedy);
        const tried = found.tried.map((text) => el("li", { text }));
        box.replaceChildren(
          ...(cards.length ? cards : [el("p", { text: "No remedy was found." })]),
          tried.length ? el("details", {}, el("summary", { text: plural(tried.length, "change") + " that did not help" }), el("ul", {}, tried)) : "",
        );
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

function remedy(found) {
  const commands = found.commands.join("\n");
  const effect = "Tried on a copy of the cluster: " + found.scheduled + " pods scheduled, "
    + (found.displaced.length ? found.displaced.length + " displaced: " + found.displaced.join(", ") : "nothing else was displaced") + ".";
  return el("div", { class: "card" },
    el("h2", {}, "Remedy " + found.rank + ": " + found.summary + " ", el("span", { class: "tag " + (found.verified ? "good" : "dim"), text: found.verified ? "verified" : "not verified" })),
    el("p", { text: effect }),
    found.manifest_diff ? el("details", {}, el("summary", { text: "change of the manifest" }), el("pre", { tabindex: 0, text: found.manifest_diff })) : null,
    el("div", { class: "row" }, copying(commands)), el("pre", { tabindex: 0, text: commands }));
}
