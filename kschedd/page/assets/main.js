// The frame of the page: views by the address's fragment, the status line, the controls, and the refresh of the open view.

import { CallError, available, call, el, failure, frozen, number, plural } from "./client.js";
import * as decision from "./decision.js";
import * as nodes from "./nodes.js";
import * as pending from "./pending.js";
import * as queue from "./queue.js";
import * as summary from "./summary.js";
import * as whatIf from "./what-if.js";

const VIEWS = { ...(frozen ? { summary } : {}), pending, nodes, decision, queue, "what-if": whatIf };
const POLL_MS = 2000;
const SHARE = 100; // the page waits this many times as long as the last refresh took
const main = document.getElementById("main");
const trouble = document.getElementById("trouble");
const outdated = document.getElementById("outdated");

let open = null; // {name, refresh, ...}; `seen` reads what the view shows besides the state of the scheduler
let seen = ""; // the part of the last status on which the views depend, after the name of the view
let resting = 0; // time before which the open view is not refreshed
let stale = false;

function route() {
  const viewed = location.hash.startsWith("#/"); // otherwise the fragment names a part of the summary
  const [name, ...args] = viewed ? location.hash.slice(2).split("/").map(decoded) : ["summary", decoded(location.hash.slice(1))];
  const known = Object.hasOwn(VIEWS, name) ? name : frozen ? "summary" : "pending";
  if (!viewed && known === "summary" && open?.name === known) {
    summary.find(args[0]);
    return;
  }
  for (const link of document.querySelectorAll("#views a")) {
    if (link.getAttribute("href") === "#/" + known) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const root = el("div");
  main.replaceChildren(root);
  open?.close?.();
  open = { name: known, ...VIEWS[known].open(root, known === name ? args : []) };
  document.title = VIEWS[known].TITLE + " · kschedd";
  refresh();
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch { // not an encoded text
    return part;
  }
}

function calm() {
  trouble.textContent = "";
  trouble.hidden = true;
}

async function refresh() {
  const current = open;
  const began = performance.now();
  const focused = main.contains(document.activeElement) ? document.activeElement : null;
  stale = false;
  outdated.hidden = true;
  resting = Infinity;
  try {
    await current.refresh();
    calm();
    if (focused && !focused.isConnected && document.activeElement === document.body) counterpart(focused)?.focus();
  } catch (fault) {
    if (current === open) tell(fault);
  } finally {
    resting = performance.now() + Math.max(POLL_MS - 100, SHARE * Math.min(performance.now() - began, 600));
  }
}

/** Return the element that replaced this one. */
function counterpart(gone) {
  const name = (each) => (each.getAttribute("aria-label") ?? "") + each.textContent;
  return [...main.querySelectorAll(gone.tagName)].find((each) => name(each) === name(gone));
}

function tell(fault) {
  trouble.textContent = fault.message;
  trouble.hidden = false;
  if (!(fault instanceof CallError)) throw fault;
}

async function poll() {
  if (document.visibilityState === "hidden") return;
  try {
    const status = await call("scheduler.status");
    if (trouble.textContent.startsWith("the daemon cannot be reached")) {
      calm();
      stale = true;
    }
    show(status);
    const { decisions_per_s, ahead_s, ...rest } = status;
    const now = JSON.stringify([open.name, rest, await open.seen?.()]);
    stale ||= now !== seen && seen.startsWith(JSON.stringify([open.name]).slice(0, -1));
    seen = now;
    if (stale && open.holds?.()) outdated.hidden = false;
    else if (stale && performance.now() >= resting) refresh();
  } catch (fault) {
    tell(fault);
  }
}

function show(status) {
  const waiting = status.active + status.backoff + status.error_backoff + status.unschedulable + status.gated
    + status.pending_group + status.incomplete_group + status.in_flight;
  const time = status.virtual_time ? "virtual time " + status.virtual_time : status.speed !== 1 ? status.speed + " times real time" : "";
  const parts = [plural(status.nodes, "node"), plural(status.pods, "placed pod"), number(waiting) + " in the queue", time];
  document.getElementById("facts").replaceChildren(
    parts.filter(Boolean).join(" · "),
    ...(status.paused ? [" ", el("b", { class: "tag bad", text: "scheduling is stopped" + (status.stopped_at?.why ? ": " + status.stopped_at.why : "") })] : []),
  );
  controls(status);
}

let allowed = null; // whether the daemon permits the controls

async function controls(status) {
  const box = document.getElementById("controls");
  if (allowed === null) {
    allowed = false;
    try {
      allowed = (await call("page.info")).controls;
    } catch { /* the next page load asks again */ }
    if (!allowed) return;
    const button = (text, method, params) => el("button", {
      type: "button",
      text,
      onclick: async () => {
        try {
          await call(method, params?.() ?? {});
          await poll();
        } catch (fault) {
          box.querySelector("[role=alert]")?.remove();
          box.append(failure(fault));
        }
      },
    });
    const seconds = el("input", { type: "number", min: 1, value: 60, "aria-label": "seconds of virtual time" });
    box.append(
      button("Pause", "debug.pause"),
      button("Step", "debug.step"),
      button("Resume", "debug.resume"),
      el("span", { class: "row", id: "virtual" }, el("label", {}, seconds, "s"), button("Advance", "time.advance", () => ({ seconds: Number(seconds.value) }))),
    );
    box.hidden = false;
  }
  if (!allowed) return;
  const [pause, step, resume] = box.querySelectorAll("button");
  pause.disabled = status.paused;
  step.disabled = resume.disabled = !status.paused;
  document.getElementById("virtual").hidden = !status.virtual_time;
}

addEventListener("hashchange", () => {
  route();
  if (location.hash.startsWith("#/")) main.focus();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the fragment names the view
  main.focus();
});
outdated.querySelector("button").addEventListener("click", () => {
  main.focus();
  refresh();
});
addEventListener("pagehide", () => open?.leave?.());
if (frozen && !available("fork.list")) document.querySelector("#views a[href='#/what-if']").parentElement.remove();
route();
if (!frozen) {
  document.addEventListener("visibilitychange", poll);
  poll();
  setInterval(poll, POLL_MS);
}
