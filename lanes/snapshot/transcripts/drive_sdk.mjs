// Our client in Node on the story of the SDK transcript; `drive_sdk.py` is the same in Python.

import { readFileSync } from "node:fs";
import { HarnessClient } from "../../../clients/node/harness_client.mjs";

const task = JSON.parse(readFileSync(process.argv[2], "utf-8"));
const prompts = ["Write the note.", [{ type: "text", text: "Was it " }, { type: "text", text: "written?" }]];

const said = ({ events, notifications, ...rest }) => ({
  ...rest,
  events: events.length,
  notifications: notifications.length,
});

const { workspace: cwd, provider, model, command } = task;
const client = new HarnessClient({ cwd, provider, model, command, maxTokens: 4096 });
const results = [];
try {
  for (const prompt of prompts) results.push(said(await client.run(prompt, { sessionId: "story", timeoutS: 50 })));
  results.push({ cancelled: await client.cancel("story") });
} finally {
  await client.close();
}
process.stdout.write(JSON.stringify(results));
