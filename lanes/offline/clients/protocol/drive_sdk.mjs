// The published Node client of the SDK wire on its journeys: `node drive_sdk.mjs TASK`, what it saw as JSON on stdout.
// It knows nothing of this project: what it imports are the published package and the standard library.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DeepSeekHarness } from "@deepseek-ai/dsh-sdk-client";

const task = JSON.parse(readFileSync(process.argv[2], "utf-8"));

function opened() {
  return new DeepSeekHarness({
    launch: { command: task.program, args: ["--profile", "sdk", ...task.flags], cwd: task.workspace, requestTimeoutMs: 60_000, shutdownTimeoutMs: 10_000 },
    cwd: task.workspace,
    provider: task.provider,
    model: task.model,
    maxTokens: 4096,
  });
}

async function within(work) {
  const client = opened();
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

const isTurnEnd = (event) => event.type === "turn/end";
const reason = (events) => events.filter(isTurnEnd).at(-1)?.data.reason.kind ?? null;
const text = (event) => event.data.message.content.map((block) => (block.type === "text" ? block.text : "")).join("");
const inserted = (event) => (event.type === "agent/inbox/spliced" ? (event.data.inserted ?? []) : []);
const told = ({ finalResponse, events }) => ({
  answer: finalResponse,
  reason: reason(events),
  kinds: events.map((event) => event.type).filter((kind) => kind !== "assistant/chunk"),
});

async function hello() {
  const seen = new Set();
  const onNotification = ({ method }) => seen.add(method);
  const result = await within((client) => client.run("Say hello.", { sessionId: "s", onNotification }));
  return { ...told(result), methods: [...seen].sort() };
}

async function tools() {
  return told(await within((client) => client.run("Write the note.", { sessionId: "s" })));
}

async function several() {
  return within(async (client) => {
    await client.start();
    const beside = client.run("Speak beside.", { sessionId: "beside" });
    const heard = client.client.subscribeSessionTree("line");
    const blocks = [1, 2, 3].map((number) => [{ type: "text", text: `Number ${number}.` }]);
    const receipts = await Promise.all(blocks.map((block) => client.client.prompt("line", block)));
    const events = [];
    while (events.filter(isTurnEnd).length < 3) {
      const one = await heard.next();
      const { params } = one;
      if (one.method === "session.event" && params.sessionId === "line") events.push(params.event);
    }
    heard.close();
    const spliced = events.flatMap(inserted).map((message) => message.id);
    const answers = events.filter((event) => event.type === "assistant/message").map(text);
    return { answers, are_receipts: spliced.join() === receipts.join(), beside: (await beside).finalResponse };
  });
}

async function resume() {
  const first = await within((client) => client.run("Remember the word.", { sessionId: "s" }));
  const second = await within((client) => client.run("What was the word?", { sessionId: "s" }));
  return { ...told(second), goes_on: second.events[0].seq > first.events.at(-1).seq };
}

async function death() {
  const onNotification = (one) => {
    const event = one.params.event;
    if (one.method === "session.event" && event.type === "assistant/chunk") process.kill(server(), "SIGKILL");
  };
  const client = opened();
  const failed = await client.run("Begin.", { sessionId: "s", onNotification }).then(
    () => "",
    (error) => error.constructor.name,
  );
  await client.close();
  const result = await within((another) => another.run("Go on.", { sessionId: "s" }));
  return { failed, answer: result.finalResponse, reason: reason(result.events) };
}

function server() {
  const newest = readdirSync(task.folder).filter((name) => name.endsWith(".pid")).sort().at(-1);
  return Number(readFileSync(join(task.folder, newest), "utf-8"));
}

async function shutdown() {
  const client = opened();
  await client.start();
  const heard = client.client.subscribeSessionTree("s");
  const events = [];
  const statuses = [];
  let began;
  const inTurn = new Promise((done) => (began = done));
  const listening = (async () => {
    try {
      for (;;) {
        const one = await heard.next();
        const { params } = one;
        if (one.method === "session.status") statuses.push(params.status);
        if (one.method !== "session.event") continue;
        events.push(params.event);
        if (params.event.type === "assistant/chunk") began();
      }
    } catch {
      return; // the client raises when its server is gone
    }
  })();
  await client.client.prompt("s", [{ type: "text", text: "Begin." }]);
  await inTurn;
  await client.close();
  await listening;
  return { reason: reason(events), statuses };
}

const journeys = {
  hello,
  tools,
  "several prompts at once": several,
  resume,
  "death of the process": death,
  "shutdown in a turn": shutdown,
};

process.stdout.write(JSON.stringify(await journeys[task.journey]()));
