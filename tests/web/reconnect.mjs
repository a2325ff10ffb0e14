// A daemon that stops and starts again: the page reports it, and continues by itself.
// node reconnect.mjs ADDRESS STOP START, where STOP and START are command lines as JSON
import { execFileSync } from "node:child_process";
import { browser, say, tab } from "./page.mjs";

const [, , address, stop, start] = process.argv;
const run = ([program, ...words]) => execFileSync(program, words, { stdio: "ignore" });
const page = await tab();
await page.goto(address + "#/nodes");
await page.locator("#facts", { hasText: "3 nodes" }).waitFor();
run(JSON.parse(stop));
await page.locator("#trouble", { hasText: "cannot be reached" }).waitFor();
say("stopped", await page.locator("#trouble").innerText());
run(JSON.parse(start));
await page.locator("#trouble").waitFor({ state: "hidden" });
say("started again", (await page.locator("#facts").innerText()).split(" · ")[0]);
await page.locator("p[role=status]", { hasText: "3 nodes in" }).waitFor();
say("the view", "is read again");
await browser.close();
