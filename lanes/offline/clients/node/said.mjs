/**
 * What every driver does with an answer.
 *
 * @module said
 */

/** Add a piece of a streamed text. */
export function take(said, piece) {
  if (!piece) return;
  said.text += piece;
  said.pieces += 1;
}

/** Note the token counts that the client tells. */
export function count(said, tokens) {
  for (const [name, number] of Object.entries(tokens)) if (typeof number === "number") said.usage[name] = number;
}

/** A limit for a client whose own limit ends when the answer begins. It counts from the start, so it is a longer one. */
export const limit = (ask) => ({ signal: AbortSignal.timeout(ask.timeout_s * 3000) });

/** The one tool. */
export const weather = ({ city }) => `${city}: rain`;
