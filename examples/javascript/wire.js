// The wire contract of docs/wire.md as functions without I/O.
import { createHash, createHmac, timingSafeEqual } from "node:crypto";

export const maxInline = 262144; // bytes of an output inside a message
const maxText = 16384; // bytes of an error's message or stack
const maxDepth = 200; // arrays and objects in each other
const maxRetryAfter = 7 * 24 * 3600 * 1000; // ms

export const streamOf = (space) => `QUIPU_${space}_WORK`;

export const consumerOf = (topic) => `work-${topic.replaceAll(".", "=")}`;

// askOf is where an engine is asked for the consumer of a topic.
export const askOf = (space, topic) => `quipu.${space}.consumer.${topic}`;

// inboxOf is the prefix of the inboxes of a worker of one topic.
export const inboxOf = (space, topic) => `_INBOX.${space}.${consumerOf(topic)}`;

// readKeys reads the keys of a topic as `quipu topic-key` prints them: ID:HEX,…,
// the newest first. Without keys nothing is signed, and nothing is checked.
export const readKeys = (text) => (text ?? "").split(",").filter(Boolean).map((one) => {
  const [id, hex] = one.split(":");
  return { id, key: Buffer.from(hex, "hex") };
});

const signed = [
  "Quipu-Topic", "Quipu-Guid", "Quipu-Publication", "Quipu-Turn", "Quipu-Epoch",
  "Quipu-Origin-Session", "Quipu-Origin-Seq", "Quipu-Published-At", "traceparent",
];

// mac is the code of a message under a key: of its destination, of the headers
// that decide, and of its body.
export function mac({ id, key }, to, get, body) {
  const text = [to, ...signed.map((name) => (get(name) ?? "").trim())].map((line) => `${line}\n`).join("");
  return `${id}.${createHmac("sha256", key).update(text).update(body).digest("hex").slice(0, 32)}`;
}

// authentic says whether a request was made with one of the keys.
export function authentic(keys, topic, headers, body) {
  const said = Buffer.from(headers?.get("Quipu-Mac") ?? "");
  return keys.length === 0 || keys.some((one) => {
    const want = Buffer.from(mac(one, `work.${topic}`, (name) => headers?.get(name), body));
    return want.length === said.length && timingSafeEqual(want, said);
  });
}

// readRequest takes a message apart; what it throws is for good.
export function readRequest(headers, body, space, topic) {
  const request = JSON.parse(body);
  const guid = headers?.get("Quipu-Guid");
  if (request === null || typeof request !== "object") throw new Error("its body is no object");
  if (request.space !== space) throw new Error("it is of another space");
  if (request.topic !== topic) throw new Error("it is of another topic");
  if (!/^[0-9a-f]{32}$/.test(guid) || bytesOf(request.request).toString("hex") !== guid) {
    throw new Error("header and body name two requests");
  }
  if (bytesOf(request.job).length !== 16) throw new Error("its job is no id");
  if (!(request.turn >= 1) || String(request.turn) !== headers.get("Quipu-Turn")) {
    throw new Error("header and body name two turns");
  }
  return request;
}

const bytesOf = (id) => Buffer.from(String(id).replaceAll("-", ""), "hex");

// laneOf is the job's lane: its answers go there.
export const laneOf = (job, lanes) => bytesOf(job).readUInt32BE(0) % lanes;

// responseGuid is the same however often a turn is answered: one answer is
// recorded.
export function responseGuid(request, turn) {
  const length = (n) => {
    const b = Buffer.alloc(4);
    b.writeUInt32BE(n);
    return b;
  };
  const name = Buffer.from("quipu-response-v1");
  const number = Buffer.alloc(8);
  number.writeBigUInt64BE(BigInt(turn));
  const guid = createHash("sha256")
    .update(length(name.length)).update(name)
    .update("g").update(length(16)).update(bytesOf(request))
    .update("i").update(length(8)).update(number)
    .digest().subarray(0, 16);
  guid[6] = (guid[6] & 0x0f) | 0x80;
  guid[8] = (guid[8] & 0x3f) | 0x80;
  return guid.toString("hex");
}

// message is the response to a request: where it goes, its headers, its body.
export function message(request, headers, response, lanes, keys) {
  const guid = responseGuid(request.request, request.turn);
  const out = { "Quipu-Guid": guid, "Quipu-Turn": String(request.turn), "Quipu-Topic": request.topic };
  for (const name of ["Quipu-Publication", "Quipu-Epoch", "Quipu-Published-At", "traceparent"]) {
    const value = headers.get(name);
    if (value) out[name] = value;
  }
  const body = JSON.stringify({
    kind: "response", job: request.job, row: request.request, activity: request.activity, dad: request.dad,
    turn: request.turn, flow: request.flow, version: request.version, response,
  });
  const lane = `lane.${laneOf(request.job, lanes)}`;
  out["Nats-Msg-Id"] = `${guid}.${out["Quipu-Epoch"]}.${out["Quipu-Publication"]}`;
  if (keys.length > 0) {
    out["Quipu-Mac"] = mac(keys[0], lane, (name) => out[name], body);
    out["Nats-Msg-Id"] += `.${out["Quipu-Mac"]}`;
  }
  return { subject: `quipu.${request.space}.${lane}`, headers: out, body };
}

// Failure is what a handler throws to say how its run ended. Codes 400 to 499
// but 408 and 429 are business errors and end the activity; the others are a
// failed attempt, which the flow's policy repeats, after retryAfterMs at least.
export class Failure extends Error {
  constructor(code, message, { data, retryAfterMs } = {}) {
    super(message);
    Object.assign(this, { code, data, retryAfterMs });
  }
}

// success is the response with an output of at most limit bytes.
export function success(output, limit) {
  try {
    const value = recordable(output ?? null);
    const size = Buffer.byteLength(JSON.stringify(value));
    if (size <= limit) return { kind: "terminal", code: 200, output: value };
    return ended(500, "result_too_large", `the result has ${size} bytes, the limit is ${limit}: return a reference to it`);
  } catch (err) {
    return ended(500, "result_invalid", `the result cannot be recorded: ${err.message}`);
  }
}

// recordable is a value as it travels. It refuses what JSON allows and the
// journal does not: a response with it would never be accepted.
function recordable(value) {
  const plain = JSON.parse(JSON.stringify(value));
  const check = (v, depth) => {
    if (depth > maxDepth) throw new Error(`it is deeper than ${maxDepth} levels`);
    if (typeof v === "string" && (v.includes("\0") || !v.isWellFormed())) {
      throw new Error("a text has U+0000 or half a surrogate pair");
    }
    if (v === null || typeof v !== "object") return;
    for (const [key, inner] of Object.entries(v)) {
      check(key, depth);
      check(inner, depth + 1);
    }
  };
  check(plain, 0);
  return plain;
}

// ended ends the activity with an error.
export const ended = (code, error, message) => ({ kind: "terminal", code, error: { class: error, message: cut(message) } });

// failure is the response to what a handler threw.
export function failure(err) {
  const message = cut(String(err?.message ?? err));
  if (!(err instanceof Failure)) {
    return { kind: "failed", code: 500, error: { class: "error", message, stack: cut(String(err?.stack ?? "")) } };
  }
  const code = Number.isInteger(err.code) && err.code >= 400 && err.code <= 599 ? err.code : 500;
  const error = { class: "business", message };
  try {
    if (err.data !== undefined) error.data = recordable(err.data);
  } catch (bad) {
    error.message = cut(`${message} (its data is left out: ${bad.message})`);
  }
  if (code < 500 && code !== 408 && code !== 429) return { kind: "terminal", code, error };
  const retryAfter = Math.min(Math.max(Math.round(err.retryAfterMs ?? 0), 0), maxRetryAfter);
  return { kind: "failed", code, error, retry_after_ms: retryAfter };
}

function cut(text) {
  text = text.replaceAll("\0", "\uFFFD").toWellFormed();
  if (Buffer.byteLength(text) <= maxText) return text;
  return Buffer.from(text).subarray(0, maxText - 6).toString() + "…"; // half a letter becomes U+FFFD
}
