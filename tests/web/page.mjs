// A page in headless Chromium, for the programs of the tests: faults, screenshots, and accessibility.
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const folder = process.env.KSCHEDD_SCREENSHOTS;
export const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
export const say = (name, value) => console.log(name + ": " + String(value).replaceAll("\u00a0", " "));
const faults = [], violations = [], requested = new Set();

/** Open a tab, of this browser context or of a new one; `token`: its user. Each fault of its scripts is noted. */
export async function tab({ context, token } = {}) {
  const headers = token ? { extraHTTPHeaders: { Authorization: "Bearer " + token } } : {};
  const page = await (context ?? await browser.newContext({ viewport: { width: 1200, height: 900 }, ...headers })).newPage();
  page.setDefaultTimeout(60_000);
  page.on("pageerror", (fault) => faults.push(fault.message));
  page.on("console", (message) => { if (message.type() === "error" && !message.text().includes("Failed to load resource")) faults.push(message.text()); });
  page.on("dialog", (dialog) => { faults.push("dialog: " + dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => requested.add(new URL(request.url()).origin));
  return page;
}

export async function shot(page, name, { fullPage = true } = {}) {
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: folder + "/" + name + ".png", fullPage });
}

/** Note violations of accessibility rules. */
export async function check(page, name) {
  const found = await page.evaluate(axe + "; window.axe.run()");
  violations.push(...found.violations.map((each) => name + " " + each.id + " " + each.nodes.map((node) => node.target).join(" ")));
}

/** Print whether the page is as wide as the window, and, in a wide window, whether each table is. */
export async function width(page, name) {
  const [inner, outer, tables] = await page.evaluate(() => {
    const root = document.documentElement;
    return [root.scrollWidth, root.clientWidth, [...document.querySelectorAll(".wide")].filter((each) => each.scrollWidth > each.clientWidth).length];
  });
  say(name, inner > outer ? "is " + inner + " px wide" : outer >= 1200 && tables ? tables + " tables scroll" : "fits");
}

export async function finish() {
  say("origins", requested.size);
  say("axe", violations.length ? violations.join("; ") : "no violations");
  say("faults", faults.length ? faults.join("; ") : "none");
  await browser.close();
}
