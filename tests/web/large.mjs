// 5,000 nodes and 50,000 pods: the numbers of calls, the received bytes, and the drawn nodes of each view.
// node large.mjs ADDRESS
import { finish, say, shot, tab } from "./page.mjs";

const [, , address] = process.argv;
const page = await tab();
let calls = [], bytes = 0;
page.on("response", async (response) => {
  if (!response.url().includes("/web/call/")) return;
  calls.push(response.url().split("/").at(-1));
  bytes += (await response.request().sizes()).responseBodySize;
});
const own = () => calls.filter((method) => !["scheduler.status", "page.info"].includes(method)).sort();
const view = async (name, ready, most) => {
  calls = [];
  bytes = 0;
  await page.goto(address + "#/" + name);
  await page.locator(ready).first().waitFor();
  await page.waitForLoadState("networkidle");
  say(name, own().join(" ") + (bytes <= most ? ", bytes within " : ", " + bytes + " bytes instead of ") + most);
};

await view("nodes", "canvas.map", 250_000);
say("facts", (await page.locator("p[role=status]", { hasText: "5,000 nodes in 3 zones" }).innerText()).split(" In each zone")[0]);
const row = (at) => page.locator("main tbody tr").nth(at).locator("th, td:last-child").allInnerTexts();
say("first nodes", [(await row(0)).join(" "), (await row(1)).join(" ")].join("; "));
say("colors", await page.evaluate(() => {
  const canvas = document.querySelector("canvas.map");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = new Set();
  for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255) found.add(data[at] << 16 | data[at + 1] << 8 | data[at + 2]);
  return found.size > 4 ? "several" : found.size;
}));
for (const size of [400, 2000, 1200]) {
  await page.setViewportSize({ width: size, height: 900 });
  await page.waitForTimeout(300);
  await shot(page, "web-nodes-5000-" + size, { fullPage: false });
}
await page.locator("canvas.map").focus();
await page.keyboard.press("ArrowDown");
await page.keyboard.press("Enter");
await page.locator("section[aria-live] li").first().waitFor();
say("pods of a node", await page.locator("section[aria-live] li").count());
await view("pending", "summary", 20_000);
calls = [];
bytes = 0;
await page.locator("summary").first().click();
await page.locator(".funnel").waitFor();
say("cause", own().join(" ") + (bytes < 20_000 ? ", small" : ", " + bytes + " bytes"));
say("funnel", (await page.locator(".funnel li").allInnerTexts()).map((text) => text.replaceAll("\n", " ")).join("; "));
await view("queue", ".lanes li", 60_000);
await finish();
