/**
 * Let a published client for Node do one task: `node drive.mjs DRIVER < ask.json > said.json`.
 *
 * The words of task and answer are those of `asking.py` beside this folder. A driver is given the task and what has been
 * said so far, which it fills in as it comes; whatever it throws is what the client says.
 *
 * @module drive
 */

import { text } from "node:stream/consumers";

/** @typedef {{kind: string, status: number, message: string}} Trouble */
/**
 * @typedef {object} Said
 * @property {string} text
 * @property {number} pieces
 * @property {string} thought
 * @property {[string, object][]} calls
 * @property {{[name: string]: number}} usage
 * @property {object | null} data
 * @property {number[][]} vectors
 * @property {Trouble | null} trouble
 */

/** The errors that led to an error, it first. */
function chainOf(error) {
  const chain = [];
  for (let at = error; at && !chain.includes(at); at = at.cause ?? at.lastError) chain.push(at);
  return chain;
}

/** Say in the common words how a client failed. */
function troubleOf(error) {
  const chain = chainOf(error);
  const said = chain.map((one) => [one.name, one.constructor?.name, one.code, one.type].filter(Boolean).join(" "));
  const message = chain.map((one, at) => `${said[at]}: ${one.message ?? JSON.stringify(one)}`).join(" | ");
  const status = chain.map((one) => one.status ?? one.statusCode).find((one) => typeof one === "number") ?? 0;
  if (said.some((one) => /Timeout|Abort/.test(one))) return { kind: "timeout", status: 0, message };
  if (status >= 400) return { kind: "status", status, message };
  if (said.some((one) => /APIConnectionError|SocketError|UND_ERR_SOCKET|ECONNRESET/.test(one)) || /terminated/.test(message))
    return { kind: "connection", status: 0, message };
  return { kind: "answer", status: 0, message };
}

/** @type {Said} */
const said = { text: "", pieces: 0, thought: "", calls: [], usage: {}, data: null, vectors: [], trouble: null };
try {
  const { answer } = await import(`./${process.argv[2]}.mjs`);
  await answer(JSON.parse(await text(process.stdin)), said);
} catch (error) {
  said.trouble = troubleOf(error);
}
// Some clients leave a timer behind when they fail, and Node would wait for it.
process.stdout.write(JSON.stringify(said), () => process.exit(0));
