// Virtual time: a button advances it, and the clock, the queue and the map of nodes follow.
// node time.mjs ADDRESS SECONDS
import { finish, say, tab } from "./page.mjs";

const [, , address, seconds] = process.argv;
const page = await tab();
const clock = async () => (await page.locator("#facts").innerText()).match(/virtual time (\S+)/)?.[1];
await page.goto(address + "#/decision");
const resume = page.locator("#controls button", { hasText: "Resume" });
await page.locator("#controls button", { hasText: "Advance" }).waitFor();
if (await resume.isEnabled()) await resume.click(); // a replay is stopped
await page.locator("#facts b").waitFor({ state: "detached" });
const before = Date.parse(await clock());
const rows = await page.locator("tbody tr").count();
await page.locator("#controls input").fill(seconds);
await page.locator("#controls button", { hasText: "Advance" }).focus();
await page.keyboard.press("Enter");
await page.waitForFunction((before) => Date.parse(document.getElementById("facts").innerText.match(/virtual time (\S+)/)?.[1]) > before, before);
say("seconds later", Math.round((Date.parse(await clock()) - before) / 1000));
await page.waitForFunction((rows) => document.querySelectorAll("tbody tr").length > rows, rows);
say("attempts", "more");
await page.goto(address + "#/nodes");
await page.locator("button", { hasText: "Read earlier times" }).click();
const slider = page.locator("input[type=range]");
await slider.waitFor();
await slider.focus();
const full = () => page.locator("section .wide tbody tr").first().locator("td").last().innerText();
await page.keyboard.press("Home");
say("first time", (await page.locator("output").innerText()) + ", " + (await full()));
await page.keyboard.press("End");
await page.keyboard.press("ArrowLeft");
say("last time", await full());
await finish();
