// Forks side by side: a change is made in a fork only, and its effects are shown as moves, evictions and usage.

import { call, el, failure, frozen, number, plural, table } from "./client.js";

export const TITLE = "What if";
const MOST = 100;

export function open(root) {
  const cards = el("div", { class: "forks" });
  const trouble = el("div");
  const text = el("textarea", { "aria-label": "manifests", spellcheck: "false", placeholder: "YAML or JSON, as for kubectl apply" });
  const name = el("input", { size: 20, "aria-label": "name of the copy", value: freshName() });
  const create = async (change) => {
    trouble.replaceChildren(el("p", { class: "dim", role: "status", text: "Working on a copy of the cluster ..." }));
    let fork = null;
    try {
      fork = (await call("fork.create", { name: name.value.trim(), what_if: true })).name;
      name.value = freshName();
      await change(fork);
      await call("fork.advance", { fork });
      trouble.replaceChildren();
    } catch (fault) {
      trouble.replaceChildren(failure(fault));
      if (fork) await call("fork.discard", { fork }); // a copy without the change would mislead
    }
    await refresh();
  };
  const node = el("input", { size: 20, "aria-label": "node to remove", placeholder: "node" });
  if (frozen) root.append(el("h1", { text: "What if" }), cards);
  else root.append(
    el("h1", { text: "What if" }),
    el("p", { class: "dim", text: "Each change is made in a copy of the cluster. The cluster does not change. A copy exists until it is discarded." }),
    el("section", {},
      el("label", {}, "name of the copy", name),
      text,
      el("div", { class: "row" },
        el("button", { type: "button", text: "Apply the manifests in a copy", onclick: () => create((fork) => applied(fork, text.value)) }),
        el("label", {}, "or remove", node),
        el("button", { type: "button", text: "Remove the node in a copy", onclick: () => create((fork) => call("fork.call", { fork, method: "objects.delete", params: { kind: "Node", name: node.value.trim() } })) })),
      trouble),
    cards,
  );

  async function refresh() {
    const forks = await call("fork.list");
    cards.replaceChildren(...(forks.length ? await Promise.all(forks.map((fork) => card(fork, refresh))) : [el("p", { class: "dim", text: "There is no copy." })]));
  }
  return { refresh, holds: () => text === document.activeElement, seen: () => call("fork.list") };
}

const freshName = () => "web-" + Math.random().toString(36).slice(2, 8);

async function applied(fork, manifests) {
  const answer = await call("fork.call", { fork, method: "objects.apply", params: { manifests } });
  if (answer.errors.length) throw new Error(answer.errors.map((error) => error.message).join("; "));
}

async function card(fork, refresh) {
  const made = el("section", { class: "card" }, el("h2", { text: fork.name }));
  made.append(el("p", { class: "dim", text: (frozen ? "" : "by " + (fork.user || "an unknown user") + ", ") + plural(fork.writes, "write") + ", " + plural(fork.pending, "pending pod") }));
  try {
    const found = await call("fork.diff", { fork: fork.name });
    const counts = new Map();
    for (const pod of found.pods) counts.set(pod.change, (counts.get(pod.change) ?? 0) + 1);
    const summary = [...counts].map(([change, count]) => number(count) + " " + change).join(", ");
    made.append(el("p", {}, el("b", { text: summary ? "Pods: " + summary : "No pod changed its node." })));
    const changes = found.usage.filter((each) => Math.abs(each.before - each.after) > 0.0005);
    if (changes.length) made.append(table("Requested share of all nodes", ["resource", "before", "after"], changes.map((each) => [each.resource, share(each.before), share(each.after)])));
    const lines = [
      ...found.nodes.map((each) => each.sign + " node " + each.name + ": " + each.what.join(", ")),
      ...found.objects.map((each) => each.sign + " " + each.kind + " " + (each.namespace ? each.namespace + "/" : "") + each.name + ": " + each.what.join(", ")),
      ...found.pods.map((each) => each.sign + " pod " + each.namespace + "/" + each.name + ": " + each.change + " " + (each.node ?? "") + (each.to ? " -> " + each.to : "") + (each.why ? " (" + each.why + ")" : "")),
      ...found.config,
    ];
    if (lines.length) made.append(el("details", {}, el("summary", { text: plural(lines.length, "change") + " as text" }), el("pre", { tabindex: 0, text: lines.slice(0, MOST).join("\n") + (lines.length > MOST ? "\nand " + (lines.length - MOST) + " more" : "") })));
  } catch (fault) {
    made.append(failure(fault));
  }
  if (!frozen) made.append(el("button", {
    type: "button",
    text: "Discard",
    "aria-label": "discard " + fork.name,
    onclick: async () => {
      try {
        await call("fork.discard", { fork: fork.name });
        await refresh();
      } catch (fault) {
        made.append(failure(fault));
      }
    },
  }));
  return made;
}

const share = (value) => (100 * value).toFixed(1) + " %";
