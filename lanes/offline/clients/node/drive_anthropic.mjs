/**
 * The published Anthropic client for Node.
 *
 * @module drive_anthropic
 */

import Anthropic from "@anthropic-ai/sdk";

import { count, limit, take, weather } from "./said.mjs";

/** Do the task with the client. */
export async function answer(ask, said) {
  const client = new Anthropic({
    apiKey: ask.key,
    baseURL: ask.url,
    maxRetries: ask.retries,
    timeout: ask.timeout_s * 1000,
  });
  const messages = [{ role: "user", content: ask.question }];
  const given = { model: ask.model, max_tokens: ask.max_tokens, system: ask.system, messages };
  const { name, text: description, schema } = ask.tool;
  if (ask.has_tool) given.tools = [{ name, description, input_schema: schema }];
  if (ask.thinks) given.thinking = { type: "enabled", budget_tokens: ask.thinking_tokens };
  if (ask.wants_data) {
    const format = { type: "json_schema", schema: ask.data_schema };
    said.data = (await client.messages.parse({ ...given, output_config: { format } })).parsed_output;
    return;
  }
  for (let round = 0; round < ask.max_rounds; round += 1) {
    const final = ask.is_stream ? await streamed(client, given, said, limit(ask)) : await whole(client, given, said);
    const cached = final.usage.cache_read_input_tokens ?? 0;
    count(said, {
      input: final.usage.input_tokens + cached, // this provider counts what came from its cache apart
      output: final.usage.output_tokens,
      cached,
      reasoning: final.usage.output_tokens_details?.thinking_tokens,
    });
    messages.push({ role: "assistant", content: final.content });
    const calls = final.content.filter((block) => block.type === "tool_use");
    if (!calls.length) return;
    said.calls.push(...calls.map((call) => [call.name, call.input]));
    const results = calls.map((call) => ({ type: "tool_result", tool_use_id: call.id, content: weather(call.input) }));
    messages.push({ role: "user", content: results });
  }
}

async function whole(client, given, said) {
  const final = await client.messages.create(given);
  for (const block of final.content) {
    if (block.type === "text") said.text += block.text;
    if (block.type === "thinking") said.thought += block.thinking;
  }
  return final;
}

async function streamed(client, given, said, options) {
  const stream = client.messages.stream(given, options);
  for await (const event of stream) {
    if (event.type !== "content_block_delta") continue;
    if (event.delta.type === "text_delta") take(said, event.delta.text);
    if (event.delta.type === "thinking_delta") said.thought += event.delta.thinking;
  }
  return stream.finalMessage();
}
