// The handlers: a function from JSON to JSON for each topic.
import { setTimeout as sleep } from "node:timers/promises";
import { Failure } from "./wire.js";

const copyMs = Number(process.env.LABEL_COPY_MS ?? 100); // how long the printer takes for a copy

// print prints the labels of a parcel. `jams` makes the printer fail on that
// many attempts.
async function print({ address, grams, copies = 1, jams = 0 }, call) {
  if (grams > 31_500) throw new Failure(422, `${grams} g is too heavy`, { data: { most: 31_500 } });
  if (call.attempt <= jams) throw new Failure(503, "the printer is jammed", { retryAfterMs: 100 });
  for (let i = 0; i < copies; i++) await sleep(copyMs, null, { signal: call.signal });
  return { label: `${address} / ${grams} g`, copies, number: call.key };
}

export const handlers = { "labels.print": print };
