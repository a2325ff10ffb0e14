// The queue by place, the pods that wait at Permit, and the moves of one pod with the events that caused them.

import { available, call, duration, el, failure, frozen, number, podLink } from "./client.js";

export const TITLE = "Queue";
const PLACES = [
  ["active", "Active", "are attempted next, in this order"],
  ["in_flight", "In flight", "are being attempted"],
  ["backoff", "Backoff", "wait until their backoff ends"],
  ["error_backoff", "Error backoff", "wait after an error"],
  ["unschedulable", "Unschedulable", "wait for an event that may help"],
  ["gated", "Gated", "are not attempted until their gates are removed"],
  ["pending_group", "Group is pending", "wait for the other pods of their group"],
  ["incomplete_group", "Group is incomplete", "wait until their group has enough pods"],
];
const SHOWN = 100;

export function open(root) {
  const lanes = el("div", { class: "lanes" });
  const way = el("section", { "aria-live": "polite" }, el("p", { class: "dim", text: "Choose \"moves\" to see the moves of a pod through the queue." }));
  root.append(el("h1", { text: "Queue" }), lanes, frozen ? "" : way);
  return {
    refresh: async () => {
      const [{ counts }, waiting] = await Promise.all([call("queue.list", { limit: 0 }), call("waiting.list")]);
      const filled = PLACES.filter(([place]) => counts[place]);
      const listed = await Promise.all(filled.map(([place]) => call("queue.list", { place, limit: SHOWN })));
      const made = filled.map(([place, title, meaning], at) => lane(title, meaning, counts[place], listed[at].pods.map((pod) => [pod.key, note(place, pod)]), way));
      if (waiting.length) {
        made.push(lane("At Permit", "have a node, and wait for plugins", waiting.length, waiting.slice(0, SHOWN).map((each) => [each.pod, "on " + each.node + ", for " + Object.keys(each.plugins).join(", ")]), way));
      }
      lanes.replaceChildren(...(made.length ? made : [el("section", {}, el("p", { class: "good", text: "The queue is empty." }))]));
    },
  };
}

function note(place, pod) {
  if (place.endsWith("backoff")) return "for " + duration(pod.backoff_until_s) + " more, after " + number(pod.attempts) + " attempts";
  if (place === "gated") return "by " + pod.gated_by;
  if (place === "unschedulable") return "rejected by " + pod.unschedulable_plugins.join(", ") + ", for " + duration(pod.since_s);
  return "priority " + number(pod.priority) + ", for " + duration(pod.since_s);
}

function lane(title, meaning, count, pods, way) {
  return el("section", {},
    el("h2", { text: title + ": " + number(count) }),
    el("p", { class: "dim", text: "These pods " + meaning + "." }),
    el("ul", { tabindex: 0, "aria-label": title }, pods.map(([key, text]) => el("li", {},
      podLink(key), " ", el("span", { class: "dim", text }), " ",
      !available("queue.pod", { pod: key }) ? "" : el("button", { type: "button", text: "moves", "aria-label": "moves of " + key, onclick: () => show(way, key) })))),
    count > pods.length ? el("p", { class: "dim", text: "and " + number(count - pods.length) + " more" }) : null);
}

async function show(way, key) {
  try {
    const found = await call("queue.pod", { pod: key });
    const began = found.history[0]?.time_s;
    way.replaceChildren(
      el("h2", {}, "Moves of ", podLink(key)),
      el("p", { text: "Now: " + found.place.replaceAll("_", " ") + ". " + (found.message ?? "") }),
      el("ol", {}, found.history.map((step) => el("li", {
        text: "+" + duration(step.time_s - began) + ": " + (step.from ?? "outside").replaceAll("_", " ") + " → " + step.to.replaceAll("_", " ")
          + (step.event ? " because of " + step.event : "") + (step.plugin ? " (" + step.plugin + ")" : ""),
      }))),
      found.history.length ? "" : el("p", { class: "dim", text: "No moves of this pod are recorded any more." }),
    );
  } catch (fault) {
    way.replaceChildren(failure(fault));
  }
}
