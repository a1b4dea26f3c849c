/**
 * The published OpenAI client for Node, on both of its addresses.
 *
 * @module drive_openai
 */

import OpenAI from "openai";

import { count, limit, take, weather } from "./said.mjs";

/** Do the task with the client. */
export async function answer(ask, said) {
  const client = new OpenAI({
    apiKey: ask.key,
    baseURL: ask.url,
    maxRetries: ask.retries,
    timeout: ask.timeout_s * 1000,
  });
  if (ask.embeds.length) {
    const made = await client.embeddings.create({ model: "text-embedding-3-small", input: ask.embeds });
    said.vectors = made.data.map((one) => one.embedding);
  } else if (ask.way === "responses") {
    await responses(client, ask, said);
  } else {
    await chat(client, ask, said);
  }
}

async function chat(client, ask, said) {
  const messages = [
    { role: "system", content: ask.system },
    { role: "user", content: ask.question },
  ];
  const given = { model: ask.model, messages };
  const { name, text: description, schema: parameters } = ask.tool;
  if (ask.has_tool) given.tools = [{ type: "function", function: { name, description, parameters, strict: true } }];
  if (ask.wants_data) {
    const format = { type: "json_schema", json_schema: { name: "weather", schema: ask.data_schema, strict: true } };
    const parsed = await client.chat.completions.parse({ ...given, response_format: format });
    said.data = JSON.parse(parsed.choices[0].message.content);
    return;
  }
  for (let round = 0; round < ask.max_rounds; round += 1) {
    let final;
    if (ask.is_stream) {
      const stream = client.chat.completions.stream({ ...given, stream_options: { include_usage: true } }, limit(ask));
      for await (const chunk of stream) {
        take(said, chunk.choices[0]?.delta.content);
        said.thought += chunk.choices[0]?.delta.reasoning_content ?? "";
      }
      final = await stream.finalChatCompletion();
    } else {
      final = await client.chat.completions.create(given);
      said.text += final.choices[0].message.content ?? "";
      said.thought += final.choices[0].message.reasoning_content ?? "";
    }
    count(said, {
      input: final.usage.prompt_tokens,
      output: final.usage.completion_tokens,
      cached: final.usage.prompt_tokens_details?.cached_tokens,
      reasoning: final.usage.completion_tokens_details?.reasoning_tokens,
    });
    const { role, content, tool_calls: calls } = final.choices[0].message;
    if (!calls?.length) return;
    messages.push({ role, content, tool_calls: calls });
    for (const call of calls) {
      const values = JSON.parse(call.function.arguments);
      said.calls.push([call.function.name, values]);
      messages.push({ role: "tool", tool_call_id: call.id, content: weather(values) });
    }
  }
}

async function responses(client, ask, said) {
  const input = [{ role: "user", content: ask.question }];
  const given = { model: ask.model, instructions: ask.system, input };
  const { name, text: description, schema: parameters } = ask.tool;
  if (ask.has_tool) given.tools = [{ type: "function", name, description, parameters, strict: true }];
  if (ask.thinks) given.reasoning = { summary: "auto" };
  if (ask.wants_data) {
    const format = { type: "json_schema", name: "weather", schema: ask.data_schema, strict: true };
    said.data = (await client.responses.parse({ ...given, text: { format } })).output_parsed;
    return;
  }
  for (let round = 0; round < ask.max_rounds; round += 1) {
    let final;
    if (ask.is_stream) {
      const stream = client.responses.stream(given, limit(ask));
      for await (const event of stream) {
        if (event.type === "response.output_text.delta") take(said, event.delta);
        if (event.type === "response.reasoning_summary_text.delta") said.thought += event.delta;
      }
      final = await stream.finalResponse();
    } else {
      final = await client.responses.create(given);
      said.text += final.output_text;
      for (const item of final.output)
        if (item.type === "reasoning") said.thought += item.summary.map((part) => part.text).join("");
    }
    count(said, {
      input: final.usage.input_tokens,
      output: final.usage.output_tokens,
      cached: final.usage.input_tokens_details.cached_tokens,
      reasoning: final.usage.output_tokens_details.reasoning_tokens,
    });
    const calls = final.output.filter((item) => item.type === "function_call");
    if (!calls.length) return;
    for (const { parsed_arguments: _, ...item } of final.output) input.push(item);
    for (const call of calls) {
      const values = JSON.parse(call.arguments);
      said.calls.push([call.name, values]);
      input.push({ type: "function_call_output", call_id: call.call_id, output: weather(values) });
    }
  }
}
