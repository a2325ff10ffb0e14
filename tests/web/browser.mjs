// Open the page of a daemon in headless Chromium, use each view, and print one line for each result.
// node browser.mjs LINK [FOLDER-FOR-SCREENSHOTS]
import { mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const [, , link, folder] = process.argv;
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, bypassCSP: false });
const page = await context.newPage();
page.setDefaultTimeout(60_000);
const faults = [];
page.on("pageerror", (fault) => faults.push(fault.message));
page.on("console", (message) => { if (message.type() === "error" && !message.text().includes("Failed to load resource")) faults.push(message.text()); });
page.on("dialog", (dialog) => { faults.push("dialog: " + dialog.message()); dialog.dismiss(); });
const requested = new Set();
page.on("request", (request) => requested.add(new URL(request.url()).origin));

const say = (name, value) => console.log(name + ": " + value);
const open = async (view, ready) => {
  await page.goto(new URL("/web/" + view, link).href);
  await page.locator(ready).first().waitFor();
};
const shot = async (name) => {
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: folder + "/" + name + ".png", fullPage: true });
};
const violations = [];
const check = async (name) => {
  await page.evaluate(await (await import("node:fs/promises")).readFile(axe, "utf8"));
  const found = await page.evaluate(() => window.axe.run());
  violations.push(...found.violations.map((each) => name + " " + each.id + " " + each.nodes.map((node) => node.target).join(" ")));
};

await page.goto(link);
await page.locator("#facts", { hasText: "nodes" }).waitFor();
say("address after the login", page.url().includes("code=") ? "contains the code" : "contains no code");

await open("#/pending", "summary");
say("causes", await page.locator("section > details").count());
await page.locator("summary", { hasText: "9 cpu requested" }).click();
await page.locator(".funnel").waitFor();
await page.locator("button", { hasText: "Find remedies" }).click();
await page.locator(".card h2", { hasText: "Remedy 1" }).waitFor();
say("focus after the button", (await page.evaluate(() => document.activeElement.innerText)).includes("Remedy 1") ? "the remedies" : "lost");
say("remedy", await page.locator(".card h2", { hasText: "Remedy 1" }).innerText());
await check("pending");
await shot("pending");
await page.locator("input[placeholder='deployment/web']").fill("deployment/web");
await page.locator("button", { hasText: "Find the cause" }).click();
await page.locator("p", { hasText: "Cause:" }).waitFor();
say("cause for one object", await page.locator("p", { hasText: "of 4 pods scheduled" }).innerText());

await open("#/nodes", "canvas");
await page.locator("h1", { hasText: "Nodes" }).waitFor();
await page.locator("canvas.map").focus();
await page.keyboard.press("ArrowRight");
await page.keyboard.press("Enter");
await page.locator("section h2", { hasText: "pod" }).waitFor();
say("node by keyboard", await page.locator("section[aria-live] h2").first().innerText());
await page.locator("a", { hasText: "cause and remedies" }).click();
await page.locator("p", { hasText: "Cause:" }).waitFor();
say("cause for a node", (await page.locator("p", { hasText: "Cause:" }).innerText()).split(":")[1].trim());
await page.goBack();
await page.locator("canvas.map").waitFor();
await check("nodes");
await shot("nodes");

await open("#/decision", "table a");
await page.locator("tbody tr", { hasNotText: "none" }).locator("th a").first().click();
await page.locator("h2", { hasText: "Scores" }).waitFor();
await page.locator("input[type=range]").first().focus();
await page.keyboard.press("ArrowRight");
await page.locator("text=/(The same|Another) node is best/").waitFor();
say("decided again", "yes");
await check("decision");
await shot("decision");

await open("#/queue", ".lanes button");
await page.locator(".lanes button").first().click();
await page.locator("h2", { hasText: "Moves of" }).waitFor();
say("moves", (await page.locator("ol li").count()) > 1 ? "several" : "none");
await page.locator(".skip").focus();
await page.keyboard.press("Enter");
say("skip link", (await page.evaluate(() => document.activeElement.id)) + " of " + (await page.locator("h1").innerText()));
await check("queue");
await shot("queue");

await open("#/what-if", "textarea");
await page.locator("input[aria-label='node to remove']").fill("n1");
await page.locator("button", { hasText: "Remove the node" }).click();
await page.locator(".card", { hasText: "Pods:" }).waitFor();
say("fork", await page.locator(".card b").first().innerText());
await page.locator("textarea").fill("kind: Pod");
await page.locator("button", { hasText: "Apply the manifests" }).click();
await page.locator("p.bad").waitFor();
say("invalid manifest", await page.locator("p.bad").first().innerText());
await check("what-if");
await shot("what-if");
await page.locator(".card button", { hasText: "Discard" }).click();
await page.locator("text=There is no copy.").waitFor();
say("discarded", "yes");

await page.setViewportSize({ width: 400, height: 800 });
for (const view of ["pending", "nodes", "decision", "queue", "what-if"]) {
  await open("#/" + view, "h1");
  await page.waitForTimeout(500);
  const [inner, outer] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  say(view + " at 400 px", inner <= outer ? "fits" : "is " + inner + " px wide");
  await shot(view + "-400");
}
say("origins", requested.size);
say("elements made by names", await page.locator("main img, main script, main iframe").count());
say("axe", violations.length ? violations.join("; ") : "no violations");
say("faults", faults.length ? faults.join("; ") : "none");
await browser.close();
