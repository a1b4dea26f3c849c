// Which interval belongs to each receipt, as the client for Node sees it: live from notifications, and off the log.
//
//     node intervals.mjs FILE       FILE: a JSON list of {told, messages}; told are [method, params], in wire order
//     node intervals.mjs LOG ID...  LOG: the file of a stored session
//
// Says on standard output: a list of {messageId: {live: [first, last], log: [first, last]}}, or {messageId: [first, last]}.

import { readFileSync } from "node:fs";
import { RunCollector, receiptInterval, storedEvents } from "../../../clients/node/harness_client.mjs";

const [file, ...ids] = process.argv.slice(2);
const text = readFileSync(file, "utf-8");

const ofLog = (events, messageId) => {
  const found = receiptInterval(events, messageId);
  return found && [found.first, found.last];
};

const ofWire = (told, messageId) => {
  const collector = new RunCollector("s", messageId);
  for (const [method, params] of told) if (collector.take({ method, params })) break;
  const ends = collector.events.filter((event) => event.type === "turn/end");
  return [collector.events[0]?.seq ?? null, ends.at(-1)?.seq ?? null];
};

const each = (messages, make) => Object.fromEntries(messages.map((messageId) => [messageId, make(messageId)]));

const said = ids.length
  ? each(ids, (messageId) => ofLog(storedEvents(text), messageId))
  : JSON.parse(text).map(({ told, messages }) => {
      const events = told.filter(([method]) => method === "session.event").map(([, params]) => params.event);
      return each(messages, (messageId) => ({ live: ofWire(told, messageId), log: ofLog(events, messageId) }));
    });
process.stdout.write(JSON.stringify(said));
