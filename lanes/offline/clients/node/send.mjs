/**
 * Send requests as an agent spelled them, through the published clients: what came is status and words for each.
 *
 * @module send
 */

import { text } from "node:stream/consumers";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const ask = JSON.parse(await text(process.stdin));
const given = { apiKey: ask.key, baseURL: ask.url, maxRetries: 2 };
const create = {
  chat: (body) => new OpenAI(given).chat.completions.create(body),
  responses: (body) => new OpenAI(given).responses.create(body),
  messages: (body) => new Anthropic(given).messages.create(body),
}[ask.way];
const came = [];
for (const body of ask.bodies) {
  try {
    came.push([200, JSON.stringify(await create(body))]);
  } catch (error) {
    came.push([error.status ?? 0, String(error.message)]);
  }
}
process.stdout.write(JSON.stringify(came));
