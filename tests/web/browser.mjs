// Use each view of a daemon's page, and print one line for each result.
// node browser.mjs LINK AMOUNTS, where AMOUNTS is JSON: [resource, units, the amount as text on the command line]
import { check, finish, say, shot, tab, width } from "./page.mjs";

const [, , link, amounts] = process.argv;
const page = await tab();
const open = async (view, ready) => {
  await page.goto(new URL("/web/" + view, link).href);
  await page.locator(ready).first().waitFor();
};

await page.goto(link);
await page.locator("#facts", { hasText: "nodes" }).waitFor();
say("amounts", await page.evaluate(async (amounts) => {
  const { amount } = await import("./client.js");
  return JSON.stringify(amounts.filter(([resource, units, text]) => amount(resource, units) !== text));
}, JSON.parse(amounts)));
say("address after the login", page.url().includes("code=") ? "contains the code" : "contains no code");

await open("#/pending", "summary");
say("causes", await page.locator("section > details").count());
await page.locator("summary", { hasText: "9 cpu requested" }).click();
await page.locator(".funnel").waitFor();
await page.locator("button", { hasText: "Find remedies" }).click();
await page.locator(".card h2", { hasText: "Remedy 1" }).waitFor();
say("focus after the button", (await page.evaluate(() => document.activeElement.innerText)).includes("Remedy 1") ? "the remedies" : "lost");
say("remedy", await page.locator(".card h2", { hasText: "Remedy 1" }).innerText());
await check(page, "pending");
await shot(page, "web-pending");
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
await page.locator("button", { hasText: "Read earlier times" }).click();
await page.locator("input[type=range]").waitFor();
await page.locator("input[type=range]").focus();
await page.keyboard.press("Home");
await page.locator("p", { hasText: "From " }).waitFor();
say("nodes at the first time", (await page.locator("p[role=status]", { hasText: "fullest nodes" }).innerText()).split(". ")[0]);
await check(page, "nodes");
await shot(page, "web-nodes");

await open("#/decision", "table a");
await page.locator("tbody tr", { hasNotText: "none" }).locator("th a").first().click();
await page.locator("h2", { hasText: "Scores" }).waitFor();
await page.locator("input[type=range]").first().focus();
await page.keyboard.press("ArrowRight");
await page.locator("text=/(The same|Another) node is best/").waitFor();
say("decided again", "yes");
await width(page, "scores at 1200 px");
await check(page, "decision");
await shot(page, "web-decision");

await open("#/queue", ".lanes button");
await page.locator(".lanes button").first().click();
await page.locator("h2", { hasText: "Moves of" }).waitFor();
say("moves", (await page.locator("ol li").count()) > 1 ? "several" : "none");
await page.locator(".skip").focus();
await page.keyboard.press("Enter");
say("skip link", (await page.evaluate(() => document.activeElement.id)) + " of " + (await page.locator("h1").innerText()));
await check(page, "queue");
await shot(page, "web-queue");

await open("#/what-if", "textarea");
await page.locator("input[aria-label='node to remove']").fill("n1");
await page.locator("button", { hasText: "Remove the node" }).click();
await page.locator(".card", { hasText: "Pods:" }).waitFor();
say("fork", await page.locator(".card b").first().innerText());
await page.locator("textarea").fill("kind: Pod");
await page.locator("button", { hasText: "Apply the manifests" }).click();
await page.locator("p.bad").waitFor();
say("invalid manifest", await page.locator("p.bad").first().innerText());
await check(page, "what-if");
await shot(page, "web-what-if");
await page.locator(".card button", { hasText: "Discard" }).click();
await page.locator("text=There is no copy.").waitFor();
say("discarded", "yes");

for (const size of [400, 1200, 2000]) {
  await page.setViewportSize({ width: size, height: 900 });
  for (const view of ["pending", "nodes", "decision", "queue", "what-if"]) {
    await open("#/" + view, "h1");
    await page.waitForTimeout(500);
    await width(page, view + " at " + size + " px");
    await shot(page, "web-" + view + "-" + size);
  }
}
say("elements made by names", await page.locator("main img, main script, main iframe").count());
await finish();
