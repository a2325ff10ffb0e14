// Use each view of a report's file, and print one line for each result.
// node report.mjs FILE
import { pathToFileURL } from "node:url";
import { browser, check, finish, say, shot, tab, width } from "./page.mjs";

const file = pathToFileURL(process.argv[2]).href;
const page = await tab();
const loaded = [];
page.on("request", (request) => loaded.push(request.url()));
const open = async (view, ready) => {
  await page.goto(file + view);
  await page.locator(ready).first().waitFor();
};

await open("", "#summary h1");
say("title", await page.locator("h1").innerText());
await page.locator("#views a", { hasText: "Pending" }).click();
await page.locator("summary").first().click();
await page.locator(".funnel").waitFor();
say("pending", (await page.locator("summary b").first().innerText()) + ", " + (await page.locator(".funnel li").count()) + " steps");
await check(page, "pending");
await shot(page, "report-pending");

await open("#use", "#summary");
const map = await page.locator(".cells").first().boundingBox();
await page.mouse.click(map.x + 0.305 * map.width, map.y + 0.75 * map.height);
await page.locator("h1", { hasText: "Nodes" }).waitFor();
say("cell", new URL(page.url()).hash);
say("at that time", await page.locator("section[aria-live] p").first().innerText());
await page.locator("input[type=range]").focus();
await page.keyboard.press("End");
say("time", await page.locator("output").innerText());
await page.locator("canvas.map").focus();
await page.keyboard.press("ArrowRight");
await page.keyboard.press("Enter");
say("pods of a node", (await page.locator("section[aria-live] li").allInnerTexts()).join(", "));
await check(page, "nodes");
await shot(page, "report-nodes");

await open("#/decision", "table a");
say("decisions", await page.locator("tbody tr").count());
await page.locator("tbody th a").first().click();
await page.locator(".funnel").waitFor();
say("decision", await page.locator("h1").innerText());
await check(page, "decision");
await shot(page, "report-decision");
await open("#/decision/default/none", "#trouble");
say("unknown pod", await page.locator("#trouble").innerText());

await open("#/queue", ".lanes li");
say("queue", await page.locator(".lanes h2").allInnerTexts());
await check(page, "queue");
if (await page.locator("#views a", { hasText: "What if" }).count()) {
  await open("#/what-if", ".card");
  say("what if", (await page.locator(".card p").allInnerTexts()).join("; "));
  await check(page, "what-if");
}
await open("#/summary", "#summary");
await page.locator("nav a", { hasText: "Nodes over time" }).click();
say("section", await page.evaluate(() => document.getElementById("nodes").getBoundingClientRect().top < innerHeight && document.querySelector("h1").innerText));
await open("#columns", "#summary");
await open("#t-0", "#t-0");
say("linked column", (await page.locator("#t-0").isVisible()) ? "is shown" : "is hidden");
await check(page, "summary");
say("buttons that need a daemon", await page.locator("button", { hasText: /Pause|Find|Discard|Read/ }).locator("visible=true").count());

for (const [size, scheme] of [[400, "light"], [1200, "dark"], [2000, "light"]]) {
  await page.setViewportSize({ width: size, height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  for (const view of ["summary", "pending", "nodes", "decision", "queue"]) {
    await open("#/" + view, "h1");
    await width(page, view + " at " + size + " px");
  }
  await open("#/summary", "#summary");
  await check(page, "summary " + scheme);
  await shot(page, "report-" + size);
}
say("elements made by names", await page.locator("main img, main script, main iframe").count());
const plain = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
await plain.goto(file);
say("without scripts", (await plain.locator("section h2").count()) + " sections, " + (await plain.locator("#views").isVisible() ? "views" : "no views"));
say("requests beside the file", loaded.filter((url) => !url.startsWith(file)).length);
await finish();
