/**
 * The client of `harness sdk` for Node: start the server, prompt sessions, know when its work on a prompt is over.
 *
 *     const client = new HarnessClient({ cwd: ".", provider: "openai", model: "gpt-4.1-mini" });
 *     const result = await client.run("fix the failing test", { sessionId: "fix-1", timeoutS: 600 });
 *     console.log(result.finalResponse);
 *     await client.close();
 *
 * Standard library only. It does what harness.client does in Python, under the same names. A request or a run that
 * times out stays running on the server: its turn finishes and lands in the session's log; cancel stops it.
 *
 * @module harness_client
 */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { statSync } from "node:fs";
import { resolve } from "node:path";
import { StringDecoder } from "node:string_decoder";

/** @typedef {{[name: string]: unknown}} JsonObject */
/** @typedef {{method: string, params: JsonObject}} Told one notification as it stood on the wire */
/** @typedef {(told: Told) => void} Observer */
/** @typedef {{shutdownS: number, endOfInputS: number, terminateS: number, killS: number}} Grace seconds for each step of the way out */
/**
 * @typedef {object} Launch how the server is started, and what it is asked for in the handshake
 * @property {string} cwd the folder the agent works in
 * @property {string} provider
 * @property {string} model
 * @property {string[]} [command] the server's program and its arguments
 * @property {NodeJS.ProcessEnv} [environment] replaces this process's; see cleanEnvironment
 * @property {number} [maxTokens]
 * @property {string} [reasoningEffort]
 * @property {number} [requestTimeoutS] seconds for one request, the handshake among them
 * @property {Partial<Grace>} [grace]
 */
/**
 * @typedef {object} RunResult what came of a run
 * @property {string} sessionId
 * @property {string} messageId
 * @property {string} finalResponse the last text that is not empty
 * @property {string | null} finishReason how its last turn ended, null when none did
 * @property {JsonObject[]} events those of the session itself, in wire order
 * @property {Told[]} notifications those of its children too
 */

const TAIL_LINES = 400;
const TAIL_CHARACTERS = 64 << 10;
const MAX_LINE_BYTES = 128 << 20;
const SETTLE_MS = 100;
/** @type {Grace} */
const GRACE = { shutdownS: 1, endOfInputS: 6, terminateS: 3, killS: 3 };

export class ClientError extends Error {}
/** The server's program could not be started, or it refused the handshake. */
export class StartError extends ClientError {}
/** The client was closed; a new one is needed. */
export class ClientClosedError extends ClientError {}
/** The server answered or told something that is not of this wire. */
export class ProtocolError extends ClientError {}
/** A request was not answered in time. It stays running on the server. */
export class RequestTimeoutError extends ClientError {}
/** The server's process could not be ended. */
export class StillRunningError extends ClientError {}

/** A request that the server answered with an error. */
export class RpcError extends ClientError {
  /** @param {number} rpcCode @param {string} message @param {unknown} data */
  constructor(rpcCode, message, data) {
    super(message);
    this.rpcCode = rpcCode;
    this.data = data;
  }
}

/** A run did not end within its deadline; the server goes on with it. */
export class RunTimeoutError extends RequestTimeoutError {
  /** @param {string} message @param {RunResult} partial what came until then */
  constructor(message, partial) {
    super(message);
    this.partial = partial;
  }
}

/** The server's process is gone. */
export class ServerDiedError extends ClientError {
  /**
   * @param {number | null} status its exit code, negative for a signal, null when it is not known
   * @param {string} tail the end of its standard error
   * @param {RunResult | null} partial what a run had received
   */
  constructor(status, tail, partial = null) {
    const ending = status === null ? "its status is not known" : `exit status ${status}`;
    super(`the server ended, ${ending}${tail ? `; it said last:\n${tail}` : ""}`);
    this.status = status;
    this.tail = tail;
    this.partial = partial;
  }
}

/** Bytes to JSON objects, one a line; what is blank, malformed, no object or too long is left out. */
export class LineReader {
  constructor(maxLineBytes = MAX_LINE_BYTES) {
    this.maxLineBytes = maxLineBytes;
    /** @type {Buffer[]} */
    this.held = [];
    this.heldBytes = 0;
    this.dropping = false;
  }

  /** @param {Buffer} data @returns {JsonObject[]} */
  feed(data) {
    /** @type {JsonObject[]} */
    const frames = [];
    let start = 0;
    for (;;) {
      const end = data.indexOf(10, start);
      const piece = data.subarray(start, end < 0 ? data.length : end);
      if (end >= 0 && !this.dropping && !this.heldBytes && piece.length <= this.maxLineBytes) {
        const whole = parseFrame(piece);
        if (whole) frames.push(whole);
        start = end + 1;
        continue;
      }
      if (!this.dropping && this.heldBytes + piece.length > this.maxLineBytes) {
        this.dropping = true;
        this.held = [];
        this.heldBytes = 0;
      }
      if (!this.dropping) {
        this.held.push(piece);
        this.heldBytes += piece.length;
      }
      if (end < 0) return frames;
      const frame = this.dropping ? null : parseFrame(Buffer.concat(this.held));
      if (frame) frames.push(frame);
      this.held = [];
      this.heldBytes = 0;
      this.dropping = false;
      start = end + 1;
    }
  }
}

const UTF8 = new TextDecoder("utf-8", { fatal: true });

/** @param {Buffer} line @returns {JsonObject | null} */
function parseFrame(line) {
  if (!mayHoldObject(line)) return null;
  try {
    return asObject(JSON.parse(UTF8.decode(line)));
  } catch {
    return null;
  }
}

/** A flood of noise costs a look at the beginning of each line. @param {Buffer} line @returns {boolean} */
function mayHoldObject(line) {
  let at = line[0] === 0xef && line[1] === 0xbb && line[2] === 0xbf ? 3 : 0; // the mark, which the decoder takes off
  while (line[at] === 0x20 || line[at] === 0x09 || line[at] === 0x0d) at += 1;
  return line[at] === 0x7b;
}

/** Which sessions belong together: children are learned from what the server tells, and never forgotten. */
export class SessionTree {
  constructor() {
    /** @type {Map<string, string>} */
    this.parents = new Map();
  }

  /** @param {string} method @param {JsonObject} params */
  learn(method, params) {
    if (method !== "subagent.started") return;
    const parent = asText(params.parentSessionId);
    const child = asText(params.childSessionId);
    if (parent && child && parent !== child) this.parents.set(child, parent);
  }

  /** @param {string} root @param {string} method @param {JsonObject} params @returns {boolean} */
  belongs(root, method, params) {
    if (!method.startsWith("subagent.")) return this.reaches(asText(params.sessionId), root);
    return asText(params.childSessionId) === root || this.reaches(asText(params.parentSessionId), root);
  }

  /** @param {string} session @param {string} root @returns {boolean} */
  reaches(session, root) {
    const seen = new Set();
    while (session && !seen.has(session)) {
      if (session === root) return true;
      seen.add(session);
      session = this.parents.get(session) ?? "";
    }
    return false;
  }
}

/** Takes what is told of a session and its children until the run is over. */
export class RunCollector {
  /** @param {string} sessionId @param {string} messageId @param {Observer} [observer] */
  constructor(sessionId, messageId, observer) {
    this.sessionId = sessionId;
    this.messageId = messageId;
    this.observer = observer;
    /** @type {JsonObject[]} */
    this.events = [];
    /** @type {Told[]} */
    this.notifications = [];
    /** @type {string | null} */
    this.finishReason = null;
  }

  /** @param {Told} told @returns {boolean} true once the session came to rest after the receipt */
  take(told) {
    const isOwn = told.params.sessionId === this.sessionId;
    const given = told.method === "session.event" && isOwn ? told.params.event : undefined;
    const event = given === undefined ? null : asObject(given);
    if (given !== undefined && typeof event?.type !== "string") throw new ProtocolError("an event without a type");
    if (!this.notifications.length && !(event && insertedIds(event).includes(this.messageId))) return false;
    if (event?.type === "turn/end") this.finishReason = reasonKind(event);
    this.notifications.push(told);
    this.observer?.(told);
    if (event) this.events.push(event);
    return isOwn && told.method === "session.status" && told.params.status === "idle";
  }

  /** @returns {RunResult} */
  result() {
    return {
      sessionId: this.sessionId,
      messageId: this.messageId,
      finalResponse: finalText(this.events),
      finishReason: this.finishReason,
      events: this.events,
      notifications: this.notifications,
    };
  }
}

/**
 * The last text an assistant message carries from the first turn on; an empty one erases nothing.
 *
 * @param {JsonObject[]} events @returns {string}
 */
export function finalText(events) {
  let text = "";
  let started = false;
  for (const event of events) {
    started ||= event.type === "turn/start";
    if (!started || event.type !== "assistant/message" || event.surfaceOp !== "append") continue;
    const content = asObject(asObject(event.data)?.message)?.content;
    const blocks = Array.isArray(content) ? content.map(asObject) : [];
    const own = blocks.map((block) => (block?.type === "text" ? asText(block.text) : "")).join("");
    if (own) text = own;
  }
  return text;
}

/**
 * The events of a stored log, from the text of its file: without its header, without the packed pieces of streams, which
 * say nothing of where work begins and ends, and without a last line that was not finished.
 *
 * @param {string} text @returns {JsonObject[]}
 */
export function storedEvents(text) {
  const lines = text.split("\n");
  const last = parseFrame(Buffer.from(lines.pop() ?? ""));
  const rows = [...lines.map((line) => JSON.parse(line)), last];
  return asList(rows).filter((row) => typeof row.seq === "number");
}

/**
 * The interval that belongs to a receipt, from the events of a stored log alone; null when the message never came in.
 * It begins at the splice that inserted the message, and ends at the first turn end after which nothing waits that
 * would open a turn, or at the splice that took the message out unclaimed.
 *
 * @param {JsonObject[]} events @param {string} messageId @param {number} [seedLength] events of a parent's log
 * @returns {{first: number, last: number | null} | null} seqs, both included
 */
export function receiptInterval(events, messageId, seedLength = 0) {
  /** @type {Map<string, boolean>} */
  const waiting = new Map();
  /** @type {number | null} */
  let first = null;
  let entered = false;
  for (let at = 0; at < events.length; at += 1) {
    const event = events[at];
    const data = asObject(event.data) ?? {};
    const seq = Number(event.seq);
    if (event.type === "agent/inbox/spliced" && seq >= seedLength) {
      const removed = asList(data.removed);
      for (const item of removed) waiting.delete(asText(item.id));
      for (const id of insertedIds(event)) waiting.set(id, data.wakes !== false);
      if (first === null && insertedIds(event).includes(messageId)) first = seq;
      else if (first !== null && removed.some((item) => item.id === messageId && isTakenOut(item.fate))) {
        return { first, last: seq };
      }
    } else if (event.type === "turn/start") entered = false;
    else if (event.type === "step/start") entered = true;
    else if (first !== null && event.type === "session/end-seed") return { first, last: seq };
    else if (first !== null && event.type === "turn/end") {
      const wakes = [...waiting.values()].some(Boolean);
      if (!wakes || hasStopped(events, at, entered)) return { first, last: seq };
    }
  }
  return first === null ? null : { first, last: null };
}

/** @param {unknown} fate @returns {boolean} */
function isTakenOut(fate) {
  return fate === "canceled" || fate === "replaced";
}

/**
 * Whether the agent stopped at that turn end although something waits.
 *
 * @param {JsonObject[]} events @param {number} at @param {boolean} entered @returns {boolean}
 */
function hasStopped(events, at, entered) {
  const kind = reasonKind(events[at]);
  if (["error", "blocked", "interrupted"].includes(kind)) return true;
  if (kind === "completed") return !entered;
  if (kind !== "aborted") return false;
  for (const following of events.slice(at + 1)) {
    if (following.type === "turn/start") return false;
    if (following.type === "agent/inbox/spliced" || following.type === "session/end-seed") return true;
  }
  return true;
}

/** The notifications a filter lets through, in wire order. */
export class Subscription {
  /** @param {HarnessClient} client @param {(told: Told) => boolean} accepts */
  constructor(client, accepts) {
    this.client = client;
    this.accepts = accepts;
    /** @type {Told[]} */
    this.queue = [];
    /** @type {Error | null} */
    this.error = null;
    this.wake = () => {};
  }

  /** @param {Told} told */
  offer(told) {
    try {
      if (!this.accepts(told)) return;
    } catch (error) {
      this.fail(/** @type {Error} */ (error));
      this.client.unsubscribe(this);
      return;
    }
    this.queue.push(told);
    this.wake();
  }

  /** Raise this from next once everything that came before was read. @param {Error} error */
  fail(error) {
    this.error ??= error;
    this.wake();
  }

  /** @returns {Promise<Told>} */
  async next() {
    for (;;) {
      const told = this.queue.shift();
      if (told) return told;
      if (this.error) throw this.error;
      await new Promise((wake) => {
        this.wake = () => wake(undefined);
      });
    }
  }

  close() {
    this.queue = [];
    this.fail(new ClientClosedError("the subscription was closed"));
    this.client.unsubscribe(this);
  }
}

/** One server process and the sessions it serves; started at its first use. */
export class HarnessClient {
  /** @param {Launch} launch */
  constructor(launch) {
    this.launch = launch;
    this.unmatched = 0;
    this.folder = resolve(launch.cwd);
    this.grace = { ...GRACE, ...launch.grace };
    this.count = 0;
    /** @type {Map<unknown, {resolve: (result: unknown) => void, reject: (error: Error) => void}>} */
    this.pending = new Map();
    /** @type {Subscription[]} */
    this.subscriptions = [];
    this.tree = new SessionTree();
    /** @type {ServerProcess | null} */
    this.process = null;
    /** @type {Promise<void> | null} */
    this.starting = null;
    /** @type {Promise<void> | null} */
    this.closing = null;
  }

  /** How many requests wait for an answer. */
  get pendingCalls() {
    return this.pending.size;
  }

  /** The newest lines of the server's standard error. */
  get stderrTail() {
    return this.process?.tail() ?? "";
  }

  /** Start the server and shake hands; callers share one handshake. @returns {Promise<void>} */
  async start() {
    if (this.closing) throw new ClientClosedError("the client was closed; make a new one");
    this.starting ??= this.begin();
    const starting = this.starting;
    try {
      await starting;
    } catch (error) {
      if (this.starting === starting) this.starting = null;
      throw error;
    }
  }

  /**
   * Prompt a session and wait until it has come to rest.
   *
   * @param {string | JsonObject[]} content a text or content blocks
   * @param {{sessionId: string, timeoutS?: number, observer?: Observer}} options
   * @returns {Promise<RunResult>}
   */
  async run(content, { sessionId, timeoutS, observer }) {
    await this.start();
    const subscription = this.subscribe((told) => this.tree.belongs(sessionId, told.method, told.params));
    /** @type {RunCollector | null} */
    let collector = null;
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    const deadline = new AbortController();
    const partial = () => (collector ?? new RunCollector(sessionId, "")).result();
    if (timeoutS !== undefined) {
      timer = setTimeout(() => {
        const late = new RunTimeoutError(`the run did not end within ${timeoutS} s`, partial());
        deadline.abort(late);
        subscription.fail(late);
      }, timeoutS * 1000);
    }
    try {
      const messageId = await this.prompt(content, { sessionId, signal: deadline.signal });
      collector = new RunCollector(sessionId, messageId, observer);
      while (!collector.take(await subscription.next())) deadline.signal.throwIfAborted();
      return collector.result();
    } catch (error) {
      if (error instanceof ServerDiedError) throw new ServerDiedError(error.status, error.tail, collector && partial());
      throw error;
    } finally {
      clearTimeout(timer);
      subscription.close();
    }
  }

  /**
   * Queue a prompt and give its receipt: the id of the message, which is in the durable inbox by then.
   *
   * @param {string | JsonObject[]} content @param {{sessionId: string, signal?: AbortSignal}} options signal: until when
   * @returns {Promise<string>}
   */
  async prompt(content, { sessionId, signal }) {
    const contentBlocks = typeof content === "string" ? [{ type: "text", text: content }] : content;
    const { messageId } = await this.request("session/prompt", { sessionId, contentBlocks }, { signal });
    if (typeof messageId !== "string" || !messageId) throw new ProtocolError("a receipt without a messageId");
    return messageId;
  }

  /**
   * Stop a message, or with none everything of a session; gives `turn`, `queued` or `none`.
   *
   * @param {string} sessionId @param {string} [messageId] @returns {Promise<string>}
   */
  async cancel(sessionId, messageId) {
    const params = messageId === undefined ? { sessionId } : { sessionId, messageId };
    return String((await this.request("session/cancel", params)).cancelled);
  }

  /** Open a stored session without a prompt. @param {string} sessionId @returns {Promise<void>} */
  async resume(sessionId) {
    await this.request("session/resume", { sessionId });
  }

  /**
   * Any request of the wire.
   *
   * @param {string} method @param {JsonObject} [params] @param {{timeoutS?: number, signal?: AbortSignal}} [options]
   * @returns {Promise<JsonObject>}
   */
  async request(method, params, { timeoutS, signal } = {}) {
    await this.start();
    return this.ask(method, params, timeoutS ?? this.launch.requestTimeoutS ?? 30, signal);
  }

  /** Hear what a filter lets through, from now on. @param {(told: Told) => boolean} accepts @returns {Subscription} */
  subscribe(accepts) {
    const subscription = new Subscription(this, accepts);
    if (this.closing) subscription.fail(new ClientClosedError("the client was closed"));
    else if (this.process?.isGone) subscription.fail(this.process.died());
    else this.subscriptions.push(subscription);
    return subscription;
  }

  /** @param {Subscription} subscription */
  unsubscribe(subscription) {
    this.subscriptions = this.subscriptions.filter((other) => other !== subscription);
  }

  /** End the server, kindly first; resolves once its process is really gone. @returns {Promise<void>} */
  async close() {
    this.closing ??= this.finish();
    await this.closing;
  }

  async begin() {
    const command = this.launch.command ?? ["harness", "sdk"];
    const server = await ServerProcess.start(command, this.folder, this.launch.environment);
    this.process = server;
    this.tree = new SessionTree();
    server.onFrame = (frame) => this.takeFrame(frame);
    server.onEnd = () => void this.takeEnd(server);
    server.onDeaf = () => void this.failCalls(server);
    const { provider, model, maxTokens, reasoningEffort } = this.launch;
    const params = { cwd: this.folder, provider, model, ...defined({ maxTokens, reasoningEffort }) };
    try {
      const hello = await this.ask("initialize", params, this.launch.requestTimeoutS ?? 30);
      if (typeof asObject(hello.serverInfo)?.name !== "string") throw new ProtocolError("a handshake without serverInfo");
    } catch (error) {
      this.process = null;
      await server.end(() => this.askToGo(server), this.grace);
      throw new StartError(`the handshake failed: ${/** @type {Error} */ (error).message}`);
    }
  }

  /**
   * @param {string} method @param {JsonObject | undefined} params @param {number} timeoutS @param {AbortSignal} [signal]
   * @returns {Promise<JsonObject>}
   */
  async ask(method, params, timeoutS, signal) {
    const server = this.process;
    if (!server || this.closing) throw new ClientClosedError("the client was closed");
    if (server.isGone || server.isDeaf) throw await server.settledDeath();
    const result = await this.exchange(server, method, params, timeoutS, signal);
    const found = asObject(result);
    if (!found) throw new ProtocolError(`the result of ${method} is no object`);
    return found;
  }

  /**
   * @param {ServerProcess} server @param {string} method @param {JsonObject | undefined} params @param {number} timeoutS
   * @param {AbortSignal} [signal]
   */
  async exchange(server, method, params, timeoutS, signal) {
    signal?.throwIfAborted();
    this.count += 1;
    const id = `req_${this.count}`;
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    try {
      return await new Promise((resolveAnswer, reject) => {
        this.pending.set(id, { resolve: resolveAnswer, reject });
        const late = `${method} was not answered within ${timeoutS} s; it stays running on the server`;
        timer = setTimeout(() => reject(new RequestTimeoutError(late)), timeoutS * 1000);
        signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
        server.write({ jsonrpc: "2.0", id, method, ...defined({ params }) });
      });
    } finally {
      clearTimeout(timer);
      this.pending.delete(id);
    }
  }

  /** @param {JsonObject} frame */
  takeFrame(frame) {
    const { id, method } = frame;
    const hasId = typeof id === "string" || typeof id === "number";
    if (typeof method === "string" && hasId) {
      const error = { code: -32601, message: `method not found: ${method}` };
      this.process?.write({ jsonrpc: "2.0", id, error });
    } else if (typeof method === "string") this.hear({ method, params: asObject(frame.params) ?? {} });
    else if (hasId) this.takeAnswer(id, frame);
  }

  /** @param {unknown} id @param {JsonObject} frame */
  takeAnswer(id, frame) {
    const call = this.pending.get(id);
    if (!call) return;
    if (!frame.error) {
      call.resolve(frame.result);
      return;
    }
    const { code, message, data } = asObject(frame.error) ?? {};
    const words = typeof message === "string" && message ? message : "the peer answered with an error";
    call.reject(new RpcError(typeof code === "number" ? code : 0, words, data));
  }

  /** @param {Told} told */
  hear(told) {
    this.tree.learn(told.method, told.params);
    if (!this.subscriptions.length) this.unmatched += 1;
    for (const subscription of [...this.subscriptions]) subscription.offer(told);
  }

  /** @param {ServerProcess} server */
  async takeEnd(server) {
    const error = await this.failCalls(server);
    const subscriptions = this.subscriptions;
    this.subscriptions = [];
    const ended = this.closing ? new ClientClosedError("the client was closed") : error;
    for (const subscription of subscriptions) subscription.fail(ended);
  }

  /** What is asked cannot be answered any more; what the server still says is heard. @param {ServerProcess} server */
  async failCalls(server) {
    const error = await server.settledDeath();
    for (const call of [...this.pending.values()]) call.reject(error);
    return error;
  }

  async finish() {
    if (this.starting) await this.starting.catch(() => undefined);
    const server = this.process;
    if (!server) return;
    await server.end(() => this.askToGo(server), this.grace);
    this.process = null;
  }

  /** @param {ServerProcess} server */
  async askToGo(server) {
    // A server that does not answer is ended less kindly.
    await this.exchange(server, "shutdown", undefined, this.grace.shutdownS).catch(() => undefined);
  }
}

/** The server's process: its pipes, the end of its standard error, and how it is made to go. */
class ServerProcess {
  /** @param {string[]} command @param {string} cwd @param {NodeJS.ProcessEnv | undefined} environment */
  static async start(command, cwd, environment) {
    if (!isFolder(cwd)) throw new StartError(`${command[0]} did not start: there is no folder ${cwd}`);
    try {
      const child = spawn(command[0], command.slice(1), { cwd, env: environment, stdio: ["pipe", "pipe", "pipe"] });
      await once(child, "spawn");
      return new ServerProcess(child);
    } catch (error) {
      throw new StartError(`${command[0]} did not start: ${/** @type {Error} */ (error).message}`);
    }
  }

  /** @param {import("node:child_process").ChildProcessWithoutNullStreams} child */
  constructor(child) {
    this.child = child;
    this.isGone = false;
    this.isDeaf = false;
    this.errors = "";
    /** @type {(frame: JsonObject) => void} */
    this.onFrame = () => {};
    this.onEnd = () => {};
    this.onDeaf = () => {};
    const reader = new LineReader();
    child.stdout.on("data", (data) => {
      for (const frame of reader.feed(data)) this.onFrame(frame);
    });
    child.stdout.on("close", () => {
      this.isGone = true;
      this.onEnd();
    });
    const decoder = new StringDecoder("utf8");
    child.stderr.on("data", (data) => {
      this.errors = (this.errors + decoder.write(data)).slice(-4 * TAIL_CHARACTERS);
    });
    child.stdin.on("error", () => {
      this.isDeaf = true;
      this.onDeaf();
    });
    this.exited = new Promise((done) => child.on("exit", () => done(undefined)));
    this.closed = new Promise((done) => child.on("close", () => done(undefined)));
  }

  /** @param {JsonObject} frame */
  write(frame) {
    if (this.child.stdin.writable) this.child.stdin.write(`${JSON.stringify(frame)}\n`);
  }

  /** @returns {string} */
  tail() {
    const lines = this.errors.replace(/\n$/, "").split("\n").slice(-TAIL_LINES);
    return lines.join("\n").slice(-TAIL_CHARACTERS);
  }

  /** @returns {ServerDiedError} */
  died() {
    const { exitCode, signalCode } = this.child;
    return new ServerDiedError(signalCode ? -signalNumber(signalCode) : exitCode, this.tail());
  }

  /** @returns {Promise<ServerDiedError>} */
  async settledDeath() {
    await within(this.closed, SETTLE_MS);
    return this.died();
  }

  /** @param {() => Promise<void>} ask @param {Grace} grace */
  async end(ask, grace) {
    const isRunning = () => this.child.exitCode === null && this.child.signalCode === null;
    if (isRunning()) {
      await ask();
      this.child.stdin.end();
      if (await within(this.exited, grace.endOfInputS * 1000)) return;
      this.child.kill("SIGTERM");
      if (await within(this.exited, grace.terminateS * 1000)) return;
      const wasSent = this.child.kill("SIGKILL");
      if (await within(this.exited, grace.killS * 1000)) return;
      throw new StillRunningError(`process ${this.child.pid} does not end; the kill was ${wasSent ? "accepted" : "refused"}`);
    }
  }
}

/** @param {string} path @returns {boolean} */
function isFolder(path) {
  try {
    return statSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** @param {Promise<unknown>} event @param {number} limitMs @returns {Promise<boolean>} whether it came in time */
async function within(event, limitMs) {
  /** @type {NodeJS.Timeout | undefined} */
  let timer;
  const late = new Promise((done) => {
    timer = setTimeout(() => done(false), limitMs);
  });
  const came = await Promise.race([event.then(() => true), late]);
  clearTimeout(timer);
  return came === true;
}

/** @type {{[name: string]: number}} */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGQUIT: 3, SIGABRT: 6, SIGKILL: 9, SIGSEGV: 11, SIGPIPE: 13, SIGTERM: 15 };

/** @param {string} name @returns {number} */
function signalNumber(name) {
  return SIGNALS[name] ?? 0;
}

/** @param {JsonObject} event @returns {string[]} */
function insertedIds(event) {
  if (event.type !== "agent/inbox/spliced") return [];
  return asList(asObject(event.data)?.inserted).map((item) => asText(item.id));
}

/** @param {JsonObject} event @returns {string} */
function reasonKind(event) {
  const kind = asObject(asObject(event.data)?.reason)?.kind;
  if (typeof kind !== "string") throw new ProtocolError("the end of a turn without a reason");
  return kind;
}

/** @param {unknown} value @returns {JsonObject | null} */
function asObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? /** @type {JsonObject} */ (value) : null;
}

/** @param {unknown} value @returns {JsonObject[]} */
function asList(value) {
  return Array.isArray(value) ? value.map(asObject).filter((item) => item !== null) : [];
}

/** @param {unknown} value @returns {string} */
function asText(value) {
  return typeof value === "string" ? value : "";
}

/** @param {JsonObject} members @returns {JsonObject} */
function defined(members) {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined));
}

const SECRETS = ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"];

/**
 * An environment without the settings of other harnesses and without credentials, but with what is given.
 *
 * @param {NodeJS.ProcessEnv} environ @param {NodeJS.ProcessEnv} [overrides] @returns {NodeJS.ProcessEnv}
 */
export function cleanEnvironment(environ, overrides = {}) {
  const isKept = (/** @type {string} */ name) =>
    !name.startsWith("DSH_") && !SECRETS.some((word) => name.toUpperCase().includes(word));
  return { ...Object.fromEntries(Object.entries(environ).filter(([name]) => isKept(name))), ...overrides };
}
