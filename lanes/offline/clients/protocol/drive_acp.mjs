// The published Node client of the Agent Client Protocol on its journeys: `node drive_acp.mjs TASK`, what it saw as
// JSON on stdout. It knows nothing of this project: what it imports are the published package and the standard library.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, RequestError, client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const task = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const words = new Map();
const asked = [];
let answers = [];
let came;
const hasCome = new Promise((done) => (came = done));
let ask;
const isAsked = new Promise((done) => (ask = done));
let mayAnswer = Promise.resolve();

const editor = client({ name: "journey" })
  .onNotification(methods.client.session.update, ({ params: { sessionId, update } }) => {
    if (update.sessionUpdate !== "agent_message_chunk" || update.content.type !== "text") return;
    words.set(sessionId, (words.get(sessionId) ?? "") + update.content.text);
    came();
  })
  .onRequest(methods.client.session.requestPermission, async ({ params: { toolCall, options } }) => {
    asked.push(`${toolCall.title}: ${options.map((option) => option.kind).join(" ")}`);
    ask();
    await mayAnswer;
    const wanted = answers.shift();
    if (wanted === "cancelled") return { outcome: { outcome: "cancelled" } };
    const { optionId } = options.find((option) => option.kind === wanted);
    return { outcome: { outcome: "selected", optionId } };
  });

const text = (said) => ({ type: "text", text: said });
const said = (session) => words.get(session) ?? "";

/** A connection that shook hands. */
class Line {
  constructor(context, hello) {
    this.context = context;
    this.hello = hello;
  }

  async new(cwd = task.workspace) {
    const { sessionId } = await this.context.request(methods.agent.session.new, { cwd, mcpServers: [] });
    return sessionId;
  }

  async say(sessionId, ...prompt) {
    return (await this.context.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason;
  }

  async cancel(sessionId) {
    await this.context.notify(methods.agent.session.cancel, { sessionId });
  }
}

const journeys = {
  async initialize({ hello }) {
    const { promptCapabilities, loadSession } = hello.agentCapabilities;
    return {
      version: hello.protocolVersion,
      agent: hello.agentInfo.name,
      image: promptCapabilities.image,
      audio: promptCapabilities.audio,
      load: Boolean(loadSession),
    };
  },

  async new(line) {
    const sessions = new Set([await line.new(), await line.new()]);
    const refused = await line.new("relative").catch((error) => (error instanceof RequestError ? error.code : String(error)));
    return { are_two: sessions.size === 2, refused };
  },

  async prompt(line) {
    const session = await line.new();
    const first = await line.say(session, text("Say hello."));
    const second = await line.say(session, text("Again."));
    return { stops: [first, second], words: said(session) };
  },

  async "image prompt"(line) {
    const session = await line.new();
    const picture = { type: "image", mimeType: "image/png", data: task.picture };
    return { stop: await line.say(session, text("What is this?"), picture), words: said(session) };
  },

  async cancel(line) {
    const session = await line.new();
    const running = line.say(session, text("Work."));
    await hasCome;
    await line.cancel(session);
    const stop = await running;
    const before = said(session);
    const after = await line.say(session, text("Still there?"));
    return { stop, words: before, after, later: said(session).slice(before.length) };
  },

  async permission(line) {
    const session = await line.new();
    answers = ["allow_once", "reject_once", "cancelled"];
    const stops = [];
    for (const name of ["one", "two", "three"]) stops.push(await line.say(session, text(`Write ${name}.`)));
    return { stops, asked };
  },

  async "permission withdrawn"(line) {
    const session = await line.new();
    answers = ["allow_once"];
    let answer;
    mayAnswer = new Promise((done) => (answer = done));
    const running = line.say(session, text("Write one."));
    await isAsked;
    await line.cancel(session);
    const stop = await running;
    answer();
    const after = await line.say(session, text("Still there?"));
    return { stop, asked, after, later: said(session) };
  },

  async "two sessions at once"(line) {
    const [left, right] = [await line.new(), await line.new()];
    const working = line.say(left, text("Work."));
    await hasCome;
    const stop = await line.say(right, text("Speak beside."));
    await line.cancel(left);
    return { right: [stop, said(right)], left: [await working, said(left)] };
  },
};

const command = ["acp", "--provider", task.provider, "--model", task.model, ...task.flags];
const server = spawn(task.program, command, { stdio: ["pipe", "pipe", "inherit"] });
const gone = once(server, "exit");
const stream = ndJsonStream(Writable.toWeb(server.stdin), Readable.toWeb(server.stdout));
const seen = await editor.connectWith(stream, async (context) => {
  const hello = await context.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  return journeys[task.journey](new Line(context, hello));
});
server.stdin.end();
await gone;
process.stdout.write(JSON.stringify(seen));
