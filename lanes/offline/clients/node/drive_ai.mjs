/**
 * The AI SDK with its providers for OpenAI, on both addresses, and Anthropic; it calls the tools itself.
 *
 * @module drive_ai
 */

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { embedMany, generateText, jsonSchema, Output, stepCountIs, streamText, tool } from "ai";

import { count, take, weather } from "./said.mjs";

globalThis.AI_SDK_LOG_WARNINGS = false; // they would go to the standard output, which is for what was said

/** Do the task with the client. */
export async function answer(ask, said) {
  if (ask.embeds.length) {
    const model = createOpenAI({ apiKey: ask.key, baseURL: ask.url }).textEmbeddingModel("text-embedding-3-small");
    said.vectors = (await embedMany({ model, values: ask.embeds })).embeddings;
    return;
  }
  const given = {
    model: modelOf(ask),
    system: ask.system,
    prompt: ask.question,
    maxRetries: ask.retries,
    timeout: { [ask.is_stream ? "chunkMs" : "totalMs"]: ask.timeout_s * 1000 },
    stopWhen: stepCountIs(ask.max_rounds),
  };
  if (ask.has_tool) {
    const execute = (values) => {
      said.calls.push([ask.tool.name, values]);
      return weather(values);
    };
    given.tools = {
      [ask.tool.name]: tool({ description: ask.tool.text, inputSchema: jsonSchema(ask.tool.schema), execute }),
    };
  }
  if (ask.thinks && ask.way === "responses") given.providerOptions = { openai: { reasoningSummary: "auto" } };
  if (ask.thinks && ask.way === "messages")
    given.providerOptions = { anthropic: { thinking: { type: "enabled", budgetTokens: ask.thinking_tokens } } };
  if (ask.wants_data) {
    const output = Output.object({ schema: jsonSchema(ask.data_schema) });
    said.data = (await generateText({ ...given, output })).output;
    return;
  }
  const usage = ask.is_stream ? await streamed(given, said) : await whole(given, said);
  count(said, {
    input: usage.inputTokens,
    output: usage.outputTokens,
    cached: usage.inputTokenDetails.cacheReadTokens,
    reasoning: usage.outputTokenDetails.reasoningTokens,
  });
}

function modelOf(ask) {
  if (ask.way === "messages") return createAnthropic({ apiKey: ask.key, baseURL: `${ask.url}/v1` })(ask.model);
  const provider = createOpenAI({ apiKey: ask.key, baseURL: ask.url });
  return ask.way === "responses" ? provider.responses(ask.model) : provider.chat(ask.model);
}

async function whole(given, said) {
  const result = await generateText(given);
  for (const step of result.steps) {
    said.text += step.text;
    said.thought += step.reasoningText ?? "";
  }
  return result.totalUsage;
}

async function streamed(given, said) {
  const result = streamText({ ...given, onError: () => undefined }); // it would print what is thrown below anyway
  for await (const part of result.fullStream) {
    if (part.type === "text-delta") take(said, part.text);
    if (part.type === "reasoning-delta") said.thought += part.text;
    if (part.type === "error") throw part.error;
    if (part.type === "abort") throw new DOMException("the client gave up", "AbortError");
  }
  return result.totalUsage;
}
