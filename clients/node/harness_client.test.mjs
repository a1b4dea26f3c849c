// The client for Node against a server that says what its scenario says: the same claims as of the Python client.
//
//     node --test clients/node
//
// The server is lanes/unit/client/fake_server.py; FAKE_SERVER_PYTHON names the Python to run it with.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  ClientClosedError,
  HarnessClient,
  LineReader,
  ProtocolError,
  RequestTimeoutError,
  RpcError,
  RunCollector,
  RunTimeoutError,
  ServerDiedError,
  SessionTree,
  StartError,
  cleanEnvironment,
  finalText,
  receiptInterval,
  storedEvents,
} from "./harness_client.mjs";

const PYTHON = process.env.FAKE_SERVER_PYTHON ?? "python3";
const FAKE = join(dirname(fileURLToPath(import.meta.url)), "../../lanes/unit/client/fake_server.py");
const QUICK = { shutdownS: 0.2, endOfInputS: 0.2, terminateS: 0.2, killS: 5 };
const RUN = { sessionId: "s", timeoutS: 20 };

/** @type {HarnessClient[]} */
let made = [];
/** @type {string[]} */
let folders = [];

afterEach(async () => {
  await Promise.all(made.map((client) => client.close()));
  for (const folder of folders) rmSync(folder, { recursive: true });
  [made, folders] = [[], []];
});

function folder() {
  folders.push(realpathSync(mkdtempSync(join(tmpdir(), "node-client-"))));
  return folders[folders.length - 1];
}

/** @param {{[name: string]: any}} scenario @param {{[name: string]: any}} [launch] */
function make(scenario = {}, launch = {}) {
  const environment = { PATH: process.env.PATH, FAKE_SERVER: JSON.stringify({ prompts: [], ...scenario }) };
  const client = new HarnessClient({
    cwd: folder(),
    provider: "openai",
    model: "m",
    command: [PYTHON, FAKE],
    environment,
    grace: QUICK,
    requestTimeoutS: 20,
    ...launch,
  });
  made.push(client);
  return client;
}

/** @param {string} method @param {any} params */
const notify = (method, params) => ({ notify: [method, params] });
/** @param {string} type @param {any} [data] @param {string} [sessionId] @param {any} [more] */
const event = (type, data = {}, sessionId = "s", more = {}) =>
  notify("session.event", { sessionId, event: { type, data, ...more } });
const splice = (id = "MESSAGE", sessionId = "s") => event("agent/inbox/spliced", { inserted: [{ id }] }, sessionId);
const begun = (sessionId = "s") => event("turn/start", { turn: 1 }, sessionId, { seq: 1 });
const said = (/** @type {string} */ text, sessionId = "s") =>
  event("assistant/message", { message: { content: [{ type: "text", text }] } }, sessionId, { surfaceOp: "append" });
const ended = (kind = "completed") => event("turn/end", { turn: 1, reason: { kind } });
const idle = (sessionId = "s") => notify("session.status", { sessionId, status: "idle" });
const started = (/** @type {string} */ parentSessionId, /** @type {string} */ childSessionId) =>
  notify("subagent.started", { parentSessionId, childSessionId });
const ANSWER = { answer: { messageId: "MESSAGE" } };
const PLAIN = [ANSWER, splice(), ended(), idle()];
const PLAIN_KINDS = ["agent/inbox/spliced", "turn/end", "session.status"];

/** @param {import("./harness_client.mjs").RunResult} result */
const kinds = ({ notifications }) =>
  notifications.map(({ method, params }) => /** @type {any} */ (params.event)?.type ?? method);

/** @param {HarnessClient} client @returns {Promise<string[]>} what the fake server has read */
const linesOf = async (client) => /** @type {string[]} */ ((await client.request("lines")).lines);

/** @param {Promise<unknown>} promise @returns {Promise<any>} what it was rejected with */
const raised = (promise) => promise.then(() => assert.fail("nothing was raised"), (error) => error);

// where a run begins and ends

for (const at of [0, 1, 2, 3]) {
  test(`CL01 the answer may come anywhere between the receipt and the rest: ${at}`, async () => {
    const steps = [splice(), ended(), idle()];
    steps.splice(at, 0, /** @type {any} */ (ANSWER));
    const result = await make({ prompts: [steps] }).run("hi", RUN);
    assert.deepEqual([result.messageId, result.finishReason, kinds(result)], ["m-1", "completed", PLAIN_KINDS]);
  });
}

test("CL02 a rest before the receipt does not end the run", async () => {
  const result = await make({ prompts: [[idle(), ...PLAIN]] }).run("hi", RUN);
  assert.deepEqual(kinds(result), PLAIN_KINDS);
});

test("CL03 only the splice with the message is its receipt", async () => {
  const malformed = [null, 5, ["x"], [{ id: 7 }]].map((inserted) => event("agent/inbox/spliced", { inserted }));
  const steps = [splice("other"), ...malformed, event("agent/inbox/spliced"), ...PLAIN];
  assert.deepEqual(kinds(await make({ prompts: [steps] }).run("hi", RUN)), PLAIN_KINDS);
});

test("CL04 the rest and the words of a child are not the run's", async () => {
  const child = [started("s", "c"), said("of the child", "c"), idle("c")];
  const steps = [ANSWER, splice(), ...child, begun(), said("own"), ended(), idle()];
  const result = await make({ prompts: [steps] }).run("hi", RUN);
  assert.deepEqual([result.finalResponse, result.events.length, result.notifications.length], ["own", 4, 8]);
});

test("CL05 notifications of grandchildren come, and edges stay between runs", async () => {
  const first = [ANSWER, splice(), started("s", "c"), started("c", "g"), said("deep", "g"), ended(), idle()];
  const second = [ANSWER, splice(), said("again", "g"), ended(), idle()];
  const client = make({ prompts: [first, second] });
  const counts = [];
  for (let run = 0; run < 2; run += 1) {
    const { notifications } = await client.run("hi", RUN);
    counts.push(notifications.filter(({ params }) => params.sessionId === "g").length);
  }
  assert.deepEqual(counts, [1, 1]);
});

test("CL08 another session never leaks in", async () => {
  const foreign = [said("foreign", "x"), idle("x"), started("x", "y")];
  const result = await make({ prompts: [[ANSWER, splice(), ...foreign, ended(), idle()]] }).run("hi", RUN);
  assert.deepEqual(kinds(result), PLAIN_KINDS);
});

test("CL09 the observer has seen everything in order before the run returns", async () => {
  /** @type {import("./harness_client.mjs").Told[]} */
  const seen = [];
  const steps = [ANSWER, splice(), started("s", "c"), idle("c"), ended(), idle()];
  const result = await make({ prompts: [steps] }).run("hi", { ...RUN, observer: (told) => seen.push(told) });
  assert.deepEqual(seen, result.notifications);
});

test("CL10 a raising observer or filter ends its own run or subscription only", async () => {
  const fails = () => {
    throw new RangeError("mine");
  };
  const client = make({ prompts: [PLAIN, PLAIN] });
  await client.start();
  const broken = client.subscribe(fails);
  await assert.rejects(client.run("hi", { ...RUN, observer: fails }), RangeError);
  await assert.rejects(broken.next(), RangeError);
  assert.equal((await client.run("hi", RUN)).finishReason, "completed");
});

/** @type {[string, any[]][]} */
const ODD = [
  ["the end of a turn without a reason", [ANSWER, splice(), event("turn/end", { turn: 1 }), idle()]],
  ["an odd reason", [ANSWER, splice(), event("turn/end", { reason: { kind: 5 } }), idle()]],
  ["an event without a type", [ANSWER, splice(), notify("session.event", { sessionId: "s", event: {} })]],
  ["no receipt", [{ answer: {} }]],
  ["an odd receipt", [{ answer: { messageId: 5 } }]],
  ["a result that is no object", [{ answer: "text" }]],
];
for (const [name, steps] of ODD) {
  test(`CL19 what is not of this wire is a protocol error: ${name}`, async () => {
    await assert.rejects(make({ prompts: [steps] }).run("hi", RUN), ProtocolError);
  });
}

test("a handshake without the server's name is a protocol error of the start", async () => {
  await assert.rejects(make({ hello: {} }).start(), /the handshake failed: a handshake without serverInfo/);
});

test("events of a newer server are passed over", async () => {
  const steps = [ANSWER, splice(), begun(), event("system/message", { text: "new" }), said("own"), ended(), idle()];
  const result = await make({ prompts: [steps] }).run("hi", RUN);
  assert.deepEqual([result.finalResponse, result.events.length], ["own", 5]);
});

test("noise before the first frame, between frames and at the end changes nothing", async () => {
  const noise = { raw: "a shell line\n\nnull\n[]\n5\n\u00ff\n" };
  const steps = [noise, ANSWER, { raw: "between\n" }, splice(), ended(), idle(), { raw: "half a li" }];
  assert.equal((await make({ prompts: [steps] }).run("hi", RUN)).finishReason, "completed");
});

test("a request of the server is answered that nobody has it", async () => {
  const client = make({ prompts: [[ANSWER, { ask: "approve" }, splice(), ended(), idle()]] });
  await client.run("hi", RUN);
  assert.ok((await linesOf(client)).some((line) => line.includes('"id":"server-1"') && line.includes("-32601")));
});

// deadlines and death

test("CL12 a death in a run comes after what was said, with status and last words", async () => {
  const steps = [ANSWER, splice(), begun(), said("part"), { stderr: "the disk is gone\n" }, { exit: 7 }];
  const seen = [];
  const error = await raised(make({ prompts: [steps] }).run("hi", { ...RUN, observer: (told) => seen.push(told) }));
  assert.ok(error instanceof ServerDiedError);
  assert.deepEqual([error.status, error.tail, seen.length], [7, "the disk is gone", 3]);
  assert.equal(error.partial?.finalResponse, "part");
});

test("CL12 half a line at death is no frame", async () => {
  const steps = [ANSWER, splice(), { raw: '{"jsonrpc":"2.0","method":"session.status"' }, { exit: 0 }];
  await assert.rejects(make({ prompts: [steps] }).run("hi", RUN), (error) => error instanceof ServerDiedError && error.status === 0);
});

test("CL13 after the death calls and subscriptions fail at once", async () => {
  const client = make({ prompts: [[{ exit: 3 }]] });
  const isDeath = (/** @type {unknown} */ error) => error instanceof ServerDiedError && error.status === 3;
  await assert.rejects(client.prompt("hi", { sessionId: "s" }), isDeath);
  const subscription = client.subscribe(() => true);
  await assert.rejects(client.prompt("hi", { sessionId: "s" }), isDeath);
  await assert.rejects(subscription.next(), isDeath);
  await assert.rejects(client.request("lines"), isDeath);
});

test("CL20 a deadline raises with what came, and a later run works", async () => {
  const client = make({ prompts: [[ANSWER, splice(), begun(), said("part")], PLAIN] });
  await client.start();
  const error = await raised(client.run("hi", { ...RUN, timeoutS: 0.5 }));
  assert.ok(error instanceof RunTimeoutError);
  assert.deepEqual([error.partial.finalResponse, client.pendingCalls], ["part", 0]);
  assert.equal((await client.run("hi", RUN)).finishReason, "completed");
});

test("CL20 a deadline that passes before the receipt leaves no call waiting", async () => {
  const client = make({ silent: ["session/prompt"] });
  await client.start();
  await assert.rejects(client.run("hi", { ...RUN, timeoutS: 0.1 }), RunTimeoutError);
  assert.equal(client.pendingCalls, 0);
});

test("a request that is not answered in time leaves nothing", async () => {
  const client = make({ silent: ["lines"] });
  await client.start();
  await assert.rejects(client.request("lines", undefined, { timeoutS: 0.1 }), (error) => {
    return error instanceof RequestTimeoutError && error.message.includes("stays running");
  });
  assert.equal(client.pendingCalls, 0);
});

test("what the server refuses is raised as it said it", async () => {
  const client = make({ prompts: [[{ raw: '{"id":"req_2","error":{"code":-32602,"message":"sessionId: no"}}\n' }]] });
  const error = await raised(client.run("hi", RUN));
  assert.ok(error instanceof RpcError);
  assert.deepEqual([error.rpcCode, error.message], [-32602, "sessionId: no"]);
});

// start and end

test("CL14 a refused handshake reaps its process, and the next start uses another", async () => {
  const client = make({ hello: { refuse: "no adapter" } });
  for (let time = 0; time < 2; time += 1) {
    await assert.rejects(client.start(), (error) => error instanceof StartError && error.message.includes("no adapter"));
    assert.equal(client.process, null);
  }
  await client.close();
  await assert.rejects(client.start(), ClientClosedError);
});

test("CL15 many runs share one handshake", async () => {
  const client = make({ prompts: [PLAIN, PLAIN, PLAIN, PLAIN, PLAIN] });
  await Promise.all([1, 2, 3, 4, 5].map(() => client.run("hi", RUN)));
  assert.equal((await linesOf(client)).filter((line) => line.includes("initialize")).length, 1);
});

/** @type {[string, {[name: string]: boolean}, any][]} */
const WAYS_OUT = [
  ["asked", {}, [0, null]],
  ["end of input", { ignore_shutdown: true }, [0, null]],
  ["terminated", { ignore_shutdown: true, ignore_eof: true }, [null, "SIGTERM"]],
  ["killed", { ignore_shutdown: true, ignore_eof: true, ignore_term: true }, [null, "SIGKILL"]],
];
for (const [name, scenario, ending] of WAYS_OUT) {
  test(`CL16 the way out goes only as far as it must: ${name}`, async () => {
    const client = make(scenario);
    await client.start();
    const child = client.process?.child;
    await client.close();
    assert.deepEqual([child?.exitCode, child?.signalCode], ending);
  });
}

test("CL17 close may come twice, together, before start and after death", async () => {
  const [never, dead, twice] = [make(), make({ prompts: [[{ exit: 1 }]] }), make()];
  await never.close();
  await assert.rejects(dead.prompt("hi", { sessionId: "s" }), ServerDiedError);
  await twice.start();
  await Promise.all([dead.close(), twice.close(), twice.close()]);
  await twice.close();
});

test("a close fails the subscriptions that wait", async () => {
  const client = make();
  await client.start();
  const waiting = assert.rejects(client.subscribe(() => true).next(), ClientClosedError);
  await client.close();
  await waiting;
});

test("CL18 a relative folder is sent absolute once", async () => {
  const place = folder();
  mkdirSync(join(place, "inner"));
  const before = process.cwd();
  process.chdir(place);
  try {
    const client = make({}, { cwd: "inner" });
    await client.start();
    assert.equal(JSON.parse((await linesOf(client))[0]).params.cwd, join(place, "inner"));
  } finally {
    process.chdir(before);
  }
});

test("a program that does not exist says so", async () => {
  await assert.rejects(make({}, { command: ["/no/such/program"] }).start(), (error) => {
    return error instanceof StartError && error.message.includes("ENOENT");
  });
});

for (const command of [[], [""], [PYTHON, "a\0b"]]) {
  test(`a command that cannot be one is an error of the start: ${JSON.stringify(command)}`, async () => {
    await assert.rejects(make({}, { command }).start(), StartError);
  });
}

test("a folder that is not there is named, and not the program", async () => {
  await assert.rejects(make({}, { cwd: "/no/such/folder" }).start(), (error) => {
    return error instanceof StartError && error.message.endsWith("there is no folder /no/such/folder");
  });
});

test("CL13 a server that takes nothing in any more fails calls at once", async () => {
  const client = make({ prompts: [[{ deaf: true }, ANSWER]] });
  await client.prompt("a", { sessionId: "s" });
  await assert.rejects(client.prompt("b", { sessionId: "s" }), ServerDiedError);
  await assert.rejects(client.prompt("c", { sessionId: "s" }), ServerDiedError);
  assert.equal(client.pendingCalls, 0);
});

test("a flood of noise is looked at and not parsed", () => {
  const noise = Buffer.from("garbage\n".repeat(2_000_000));
  const started = process.cpuUsage();
  assert.deepEqual([new LineReader().feed(noise), new LineReader().feed(Buffer.from('\r\t {"a":1}\n'))], [[], [{ a: 1 }]]);
  const spent = process.cpuUsage(started);
  assert.ok(spent.user + spent.system < 10e6, `${(spent.user + spent.system) / 1e6} s for 2,000,000 lines`);
});

test("CL22 what many send at once arrives as whole lines", async () => {
  const client = make({ answer_all: { ok: true } });
  const numbers = Array.from({ length: 50 }, (_, number) => number);
  await Promise.all(numbers.map((number) => client.request(`m${number}`, { text: "x".repeat(20_000) })));
  const methods = (await linesOf(client)).map((line) => JSON.parse(line).method);
  assert.equal(new Set(methods).size, 52);
});

test("CL21 the tail keeps the newest lines and the unfinished one", async () => {
  const lines = Array.from({ length: 1000 }, (_, number) => `line ${number}\n`).join("");
  const client = make({ prompts: [[{ stderr: `${lines}half` }, { exit: 1 }]] });
  const error = await raised(client.prompt("hi", { sessionId: "s" }));
  const kept = error.tail.split("\n");
  assert.deepEqual([kept.length, kept[0], kept.slice(-2)], [400, "line 601", ["line 999", "half"]]);
});

// small rooms

test("CL06 a child goes with its latest parent, and a late end moves it nowhere", () => {
  const tree = new SessionTree();
  tree.learn("subagent.started", { parentSessionId: "old", childSessionId: "c" });
  tree.learn("subagent.started", { parentSessionId: "new", childSessionId: "c" });
  const late = { parentSessionId: "old", childSessionId: "c" };
  tree.learn("subagent.finished", late);
  const of = (/** @type {string} */ root) => tree.belongs(root, "session.event", { sessionId: "c" });
  assert.deepEqual([of("new"), of("old")], [true, false]);
  const ends = (/** @type {string} */ root) => tree.belongs(root, "subagent.finished", late);
  assert.deepEqual([ends("old"), ends("new")], [true, false]);
});

test("CL07 loops and empty ids are ignored and never hang", () => {
  const tree = new SessionTree();
  const edges = [["a", "a"], ["", "b"], ["b", ""], ["x", "y"], ["y", "x"], [5, "z"]];
  for (const [parentSessionId, childSessionId] of edges) tree.learn("subagent.started", { parentSessionId, childSessionId });
  assert.ok(tree.belongs("x", "session.event", { sessionId: "y" }));
  assert.ok(!tree.belongs("a", "session.event", { sessionId: "x" }));
  assert.ok(!tree.belongs("a", "session.event", {}));
});

test("CL11 events collected live are those of the interval in the log", () => {
  const events = [
    { seq: 0, type: "agent/inbox/spliced", data: { inserted: [{ id: "m-1" }], removed: [] } },
    { seq: 1, type: "turn/start", data: { turn: 1 } },
    { seq: 2, type: "agent/inbox/spliced", data: { inserted: [], removed: [{ id: "m-1", fate: "claimed" }] } },
    { seq: 3, type: "agent/inbox/spliced", data: { inserted: [{ id: "m-2" }], removed: [] } },
    { seq: 4, type: "step/start", data: { turn: 1 } },
    { seq: 5, type: "turn/end", data: { reason: { kind: "completed" } } },
    { seq: 6, type: "turn/start", data: { turn: 2 } },
    { seq: 7, type: "agent/inbox/spliced", data: { inserted: [], removed: [{ id: "m-2", fate: "claimed" }] } },
    { seq: 8, type: "step/start", data: { turn: 2 } },
    { seq: 9, type: "turn/end", data: { reason: { kind: "completed" } } },
  ];
  for (const messageId of ["m-1", "m-2"]) {
    const collector = new RunCollector("s", messageId);
    for (const entry of events) collector.take({ method: "session.event", params: { sessionId: "s", event: entry } });
    const interval = receiptInterval(events, messageId);
    const seqs = collector.events.map(({ seq }) => seq);
    assert.deepEqual([seqs[0], seqs[seqs.length - 1]], [interval?.first, interval?.last]);
  }
  assert.equal(receiptInterval(events, "m-3"), null);
});

test("a stored log is read without header, packed pieces and an unfinished last line", () => {
  const rows = [
    { type: "session", id: "s" },
    { type: "turn/start", seq: 0, data: { turn: 1 } },
    { type: "text-chunks", seq0: 1, data: {} },
    { type: "turn/end", seq: 4, data: { turn: 1 } },
  ].map((row) => JSON.stringify(row));
  const seqs = (/** @type {string} */ text) => storedEvents(text).map(({ seq }) => seq);
  assert.deepEqual(seqs(`${rows.join("\n")}\n`), [0, 4]);
  assert.deepEqual(seqs(rows.join("\n")), [0, 4]);
  assert.deepEqual(seqs(rows.join("\n").slice(0, -3)), [0]);
});

test("the last text that is not empty is the answer, from the first turn on", () => {
  const message = (/** @type {string} */ text) => ({
    type: "assistant/message",
    surfaceOp: "append",
    data: { message: { content: [{ type: "text", text }, { type: "reasoning", text: "hm" }] } },
  });
  assert.equal(finalText([message("before"), { type: "turn/start" }, message("own"), message("")]), "own");
  assert.equal(finalText([message("before")]), "");
});

for (const size of [1, 2, 3, 7, 1000]) {
  test(`frames are found however the reads cut them: ${size} bytes at a time`, () => {
    const bytes = Buffer.from('\ufeff{"a":"ü雨🌧"}\r\n\n \t\nnoise\n[]\n{"b":2}\n{"c":3}', "utf-8");
    const reader = new LineReader();
    const frames = [];
    for (let at = 0; at < bytes.length; at += size) frames.push(...reader.feed(bytes.subarray(at, at + size)));
    assert.deepEqual(frames, [{ a: "ü雨🌧" }, { b: 2 }]);
  });
}

test("a line over the limit is dropped, and the next one is read", () => {
  const reader = new LineReader(16);
  const frames = ["x".repeat(10), "y".repeat(10), '\n{"a":1}\n'].flatMap((piece) => reader.feed(Buffer.from(piece)));
  assert.deepEqual([frames, reader.heldBytes], [[{ a: 1 }], 0]);
});

test("a clean environment holds no key and no setting of others", () => {
  const environ = { PATH: "p", OPENAI_API_KEY: "k", GH_TOKEN: "t", DSH_HOME: "d", LANG: "C" };
  const kept = cleanEnvironment(environ, { OPENAI_API_KEY: "own" });
  assert.deepEqual(kept, { PATH: "p", LANG: "C", OPENAI_API_KEY: "own" });
});
