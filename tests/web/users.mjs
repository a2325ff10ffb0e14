// Two users and two tabs: who made a fork is shown, nobody changes another user's fork, and read-only users change nothing.
// node users.mjs ADDRESS TOKEN-OF-ANN TOKEN-OF-BOB, where bob is a read-only user
import { finish, say, tab } from "./page.mjs";

const [, , address, ann, bob] = process.argv;
const open = async (page, view = "#/what-if") => {
  await page.goto(address + view);
  await page.locator("h1").waitFor();
};
const cards = async (page, count) => {
  await page.locator(".card").nth(count - 1).waitFor();
  return (await page.locator(".card").evaluateAll((found) => found.map((card) => card.querySelector("h2").innerText + " " + card.querySelector("p").innerText.split(",")[0] + ": " + card.querySelector("b").innerText))).sort().join("; ");
};
const remove = async (page, fork, node) => {
  await page.locator("input[aria-label='name of the copy']").fill(fork);
  await page.locator("input[aria-label='node to remove']").fill(node);
  await page.locator("button", { hasText: "Remove the node" }).click();
};

const first = await tab({ token: ann });
const second = await tab({ context: first.context() });
const other = await tab({ token: bob });
await open(first);
await remove(first, "of-ann", "n1");
await cards(first, 1);
await open(other);
await remove(other, "of-bob", "n2");
say("cards of bob", await cards(other, 2));
await remove(other, "of-ann", "n2");
await other.locator("p.bad").first().waitFor();
say("bob uses the name of ann's fork", await other.locator("p.bad").first().innerText());
await other.locator("button[aria-label='discard of-ann']").click();
await other.locator(".card p.bad").waitFor();
say("bob discards ann's fork", await other.locator(".card p.bad").innerText());
await open(second);
say("cards of ann's second tab", await cards(second, 2));
await remove(second, "more", "n2");
say("ann's second fork", await cards(second, 3));
await second.locator("button[aria-label='discard more']").click();
await second.locator(".card", { hasText: "more" }).waitFor({ state: "detached" });
await open(first);
say("cards of ann's first tab", await cards(first, 2));

const asked = (page, method) => page.evaluate(async (method) => {
  const answer = await fetch("/web/call/" + method, { method: "POST", headers: { "Content-Type": "application/json", "X-Kschedd-Page": "1" }, body: "{}" });
  return (await answer.json()).error?.code ?? "done";
}, method);
await first.locator("#controls button").first().waitFor();
await other.waitForTimeout(2500);
say("controls of bob", await other.locator("#controls button").locator("visible=true").count());
say("bob pauses", await asked(other, "debug.pause"));
say("bob deletes", await asked(other, "objects.delete"));
await first.locator("#controls button", { hasText: "Pause" }).click();
await other.locator("#facts b", { hasText: "scheduling is stopped" }).waitFor();
say("ann pauses", "bob sees it");
await first.locator("#controls button", { hasText: "Resume" }).click();
await other.locator("#facts b").waitFor({ state: "detached" });
await finish();
