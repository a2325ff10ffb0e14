// One decision: the nodes that the filters leave, and each plugin's scores; and the same pod with other weights, on a fork.

import { available, call, causeLink, decisionAddress, el, failure, frozen, funnel, nodeLink, number, plural, podLink, rejectedBefore, table } from "./client.js";

export const TITLE = "Decision";
const ROWS = 30;

export function open(root, [namespace, name, attempt]) {
  const key = name ? namespace + "/" + name : "";
  const input = el("input", { type: "search", name: "pod", value: key, placeholder: "namespace/pod", "aria-label": "pod", size: 40 });
  const body = el("div");
  root.append(
    el("h1", { text: (key ? "Decision about " + key : "Decisions") + (attempt ? ", attempt " + attempt : "") }),
    el("form", {
      class: "row",
      onsubmit: (event) => {
        event.preventDefault();
        const [space, pod] = input.value.includes("/") ? input.value.split("/") : ["default", input.value];
        if (pod.trim()) location.hash = decisionAddress(space.trim() + "/" + pod.trim());
      },
    }, el("label", {}, "pod", input), el("button", { text: "Explain" }),
    key && available("causes.explain", { kind: "pod", namespace, name }) ? causeLink("pod", namespace, name) : null),
    body,
  );
  let fork = null;
  const discard = (leaving) => {
    if (fork) call("fork.discard", { fork }, { leaving }).catch(() => {});
    fork = null;
  };
  return {
    holds: () => fork !== null, // the weights are being changed
    leave: () => discard(true),
    close: () => discard(false),
    refresh: async () => {
      if (!key) {
        body.replaceChildren(latest((await call("scheduler.decisions", { limit: 50 })).toReversed()));
        return;
      }
      discard(false);
      const explanation = await call("scheduler.explain", { pod: key, summary: true, ...(attempt ? { attempt: Number(attempt) } : {}) });
      const again = el("div");
      body.replaceChildren(...explained(explanation), again);
      if (!frozen && !attempt && Object.keys(explanation.scores).length) again.append(await sliders(key, explanation, () => fork, (name) => { fork = name; }));
    },
  };
}

function latest(decisions) {
  if (!decisions.length) return el("section", {}, el("p", { text: "Nothing was attempted yet." }));
  const caption = frozen ? "Attempts in this report, the newest first" : "The latest attempts, the newest first";
  return el("section", {}, table(caption, ["pod", "attempt", "time", "node", "feasible", "score", "message"], decisions.map((each) =>
    [podLink(each.pod, frozen ? each.attempt : 0), each.attempt, each.time, each.node ? nodeLink(each.node) : "none", each.feasible, each.score ?? "", each.message])));
}

function explained(explanation) {
  const parts = [];
  const line = (...children) => parts.push(el("p", {}, ...children));
  const why = rejectedBefore(explanation);
  if (why) line(why);
  else if (explanation.chosen || explanation.node) {
    line(explanation.node ? "The pod is on " : "The pod would go to ", nodeLink(explanation.node ?? explanation.chosen), ".");
  } else if (explanation.message) line(explanation.message);
  for (const note of explanation.notes) line(el("span", { class: "dim", text: note }));
  const preemption = explanation.preemption;
  if (preemption) line("Preemption would evict " + plural(preemption.victims.length, "pod") + " from ", nodeLink(preemption.node), ": " + preemption.victims.slice(0, 20).join(", "));
  const judged = explanation.search.nodes && explanation.funnel
    ? [el("section", {}, el("h2", { text: "Nodes that the filters leave" }), funnel(explanation), rejections(explanation))] : [];
  return [el("section", {}, parts), ...judged, ...matrix(explanation)];
}

function rejections({ funnel: steps }) {
  const rows = steps.flatMap((step) => step.reasons.map((each) => [step.plugin + ": " + each.reason, each.count, (each.nodes ?? []).join(", ")]));
  if (!rows.length) return "";
  return table("Reasons", ["reason", "nodes", "the first nodes"], rows.sort(([, a], [, b]) => b - a).slice(0, ROWS));
}

function ranked(explanation) {
  return Object.entries(explanation.totals ?? {}).sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1));
}

function matrix(explanation) {
  const order = ranked(explanation);
  if (!order.length) return [];
  const [plugins, without] = [true, false].map((wanted) => Object.keys(explanation.scores).filter((plugin) => Object.values(explanation.scores[plugin]).some((score) => score.weighted) === wanted));
  const chosen = explanation.chosen ?? explanation.node;
  const rows = order.slice(0, ROWS);
  const second = order[1];
  const ahead = !second ? "" : second[1] === order[0][1] ? second[0] + " has the same score as the best node." : "The best node is " + number(order[0][1] - second[1]) + " ahead of the runner-up, " + second[0] + ".";
  return [el("section", {},
    el("h2", { text: "Scores" }),
    el("p", { text: ahead }),
    table(
      plural(explanation.search.feasible, "feasible node") + (explanation.search.feasible > rows.length ? ", the best " + rows.length + " are shown" : "") + "; each cell has the weighted score" + (frozen ? "" : ", and in parentheses the normalized and the raw one"),
      ["node", "total", ...plugins.map((plugin) => plugin + " × " + (explanation.weights[plugin] ?? 1))],
      rows.map(([node, total]) => [nodeLink(node), total, ...plugins.map((plugin) => {
        const score = explanation.scores[plugin][node];
        return !score ? "" : score.raw === undefined ? score.weighted : score.weighted + " (" + score.normalized + ", " + score.raw + ")";
      })]),
      { best: rows.findIndex(([node]) => node === chosen), narrow: true },
    ),
    without.length ? el("p", { class: "dim", text: "0 for each of these nodes: " + without.join(", ") }) : null)];
}

/** Sliders for the weights; each change is tried on a fork, in which the pod is decided again. */
async function sliders(key, explanation, held, hold) {
  const profile = explanation.profile;
  const answer = el("div", { role: "status" });
  const weights = Object.entries(explanation.weights).filter(([plugin]) => explanation.scores[plugin]);
  if (!weights.length) return el("div");
  const wanted = new Map(weights);
  let running = false, again = false;
  const decide = async () => {
    if (running) { again = true; return; }
    running = true;
    answer.replaceChildren(el("p", { class: "dim", text: "Deciding again on a copy of the cluster ..." }));
    try {
      if (!held()) hold((await call("fork.create", { name: "web-" + Math.random().toString(36).slice(2, 10) })).name);
      for (const [plugin, weight] of wanted) await call("fork.call", { fork: held(), method: "scheduler.set_weight", params: { profile, plugin, weight } });
      const found = await call("fork.call", { fork: held(), method: "scheduler.explain", params: { pod: key, summary: true } });
      const before = ranked(explanation), after = ranked(found);
      const same = before[0]?.[0] === after[0]?.[0];
      answer.replaceChildren(
        el("p", {}, el("b", { text: same ? "The same node is best: " : "Another node is best: " }), after.length ? nodeLink(after[0][0]) : "none", same ? "" : " instead of " + before[0]?.[0]),
        ...matrix(found),
      );
    } catch (fault) {
      answer.replaceChildren(failure(fault));
    }
    running = false;
    if (again) { again = false; decide(); }
  };
  return el("section", {},
    el("h2", { text: "What if the weights were different?" }),
    el("p", { class: "dim", text: "The pod is decided again on a copy of the cluster; the cluster does not change." }),
    el("div", { class: "row" }, weights.map(([plugin, weight]) => {
      const value = el("output", { text: weight });
      return el("label", {}, plugin, el("input", {
        type: "range", min: 1, max: Math.max(10, 2 * weight), value: weight,
        oninput: (event) => { value.textContent = event.target.value; },
        onchange: (event) => { wanted.set(plugin, Number(event.target.value)); decide(); },
      }), value);
    })),
    answer);
}
