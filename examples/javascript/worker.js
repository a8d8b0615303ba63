// A worker for Quipu that knows NATS and docs/wire.md, and nothing else.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { handlers } from "./labels.js";
import * as wire from "./wire.js";

const env = process.env;
const dev = env.QUIPU_NATS ? {} : JSON.parse(readFileSync(".quipu/dev.json")); // of a `worker dev` here
const space = env.QUIPU_SPACE ?? dev.space ?? "default";
const lanes = Number(env.QUIPU_LANES ?? 16); // as in every process of the space
const slots = Number(env.QUIPU_CONCURRENCY ?? 8); // runs at a time, per topic
const ackWaitMs = Number(env.QUIPU_ACK_WAIT_MS ?? 30_000); // of a consumer that this worker makes
const drainMs = Number(env.QUIPU_DRAIN_MS ?? 20_000); // for runs under way when it is told to end

const pullMs = 2_000; // life of a pull request; the end waits for the last one
const publishMs = 5_000; // until a PubAck
const troubleMs = 1_000; // before a request that met trouble comes again
const handBackMs = 10; // … one for another worker
const busyMs = 5_000; // … and one whose run goes on here

const nc = await connect({ servers: env.QUIPU_NATS ?? dev.nats, name: "label-worker", maxReconnectAttempts: -1, waitOnFirstConnect: true });
const jsm = await jetstreamManager(nc, { checkAPI: false });
const js = jetstream(nc);
const limit = Math.min(wire.maxInline, Math.floor(nc.info.max_payload / 2));

const running = new Set(); // request and turn of the runs in this process
const stopping = new AbortController(); // no new work
const cutOff = new AbortController(); // runs under way are handed back
const say = (event, more) => console.log(JSON.stringify({ event, ...more }));

// bind makes the topic's consumer where it is missing. Its settings, the ack
// wait too, are those of whoever made it.
async function bind(topic) {
  const stream = wire.streamOf(space);
  const wanted = wire.consumerOf(space, topic, ackWaitMs);
  const known = await jsm.consumers.info(stream, wanted.durable_name).catch((err) => {
    if (err.name !== "ConsumerNotFoundError") throw err;
    return jsm.consumers.add(stream, wanted);
  });
  return { consumer: await js.consumers.get(stream, wanted.durable_name), beatMs: known.config.ack_wait / 1e6 / 3 };
}

// slot handles one request after another: no more is pulled than there are slots.
async function slot(topic, handler) {
  let bound;
  while (!stopping.signal.aborted) {
    try {
      bound ??= await bind(topic);
      const m = await bound.consumer.next({ expires: pullMs });
      if (m) await take(m, topic, handler, bound.beatMs);
    } catch (err) {
      bound = undefined; // server, stream or consumer is gone: bind again
      say("trouble", { topic, error: err.message });
      await sleep(troubleMs, null, { signal: stopping.signal }).catch(() => {});
    }
  }
}

// take brings one delivery to its end: answered and acked, or handed back.
async function take(m, topic, handler, beatMs) {
  let request;
  try {
    request = wire.readRequest(m.headers, m.string(), space, topic);
  } catch (err) {
    say("undecodable", { topic, error: err.message });
    return m.term("undecodable");
  }
  const run = `${request.request}.${request.turn}`;
  if (stopping.signal.aborted) return m.nak(handBackMs);
  if (running.has(run)) { // its heartbeat was late
    say("busy", { request: request.request, key: request.key, publication: Number(m.headers.get("Quipu-Publication")) });
    return m.nak(busyMs);
  }
  running.add(run);
  const about = { request: request.request, key: request.key, turn: request.turn, attempt: request.attempt, publication: Number(m.headers.get("Quipu-Publication")), delivery: m.info.deliveryCount };
  say("run", about);
  const beat = setInterval(() => m.working(), beatMs);
  try {
    const response = await answer(handler, request);
    if (!response) {
      say("handed back", about);
      return m.nak(handBackMs);
    }
    const out = wire.message(request, m.headers, response, lanes);
    const h = headers();
    for (const [name, value] of Object.entries(out.headers)) h.set(name, value);
    await js.publish(out.subject, out.body, { headers: h, timeout: publishMs }); // the PubAck first …
    m.ack(); // … then the ack
    say("answered", { ...about, kind: response.kind, code: response.code });
  } catch (err) { // no PubAck: asked again, answered under the same GUID
    say("trouble", { ...about, error: err.message });
    m.nak(troubleMs);
  } finally {
    clearInterval(beat);
    running.delete(run);
  }
}

// answer runs the handler; it gives nothing for a run that the end cut off.
async function answer(handler, request) {
  if (!("input" in request)) {
    return wire.ended(413, "input_too_large", "the input is too large for a message, and this worker does not reach the database");
  }
  const ends = [cutOff.signal];
  if (request.timeout_ms) ends.push(AbortSignal.timeout(request.timeout_ms));
  const signal = AbortSignal.any(ends);
  const aborted = new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  aborted.catch(() => {});
  try {
    // The key is the same on every run and every attempt: a receiver dedupes on it.
    const call = { key: request.request, attempt: request.attempt, signal };
    return wire.success(await Promise.race([aborted, handler(request.input, call)]), limit);
  } catch (err) {
    if (cutOff.signal.aborted) return undefined;
    if (signal.aborted) return { kind: "failed", code: 408, error: { class: "timeout", message: "the timeout of the attempt passed" } };
    return wire.failure(err);
  }
}

for (const name of ["SIGTERM", "SIGINT"]) {
  process.once(name, () => {
    say("draining", { running: running.size });
    stopping.abort();
    setTimeout(() => cutOff.abort(), drainMs).unref();
  });
}
say("ready", { space, topics: Object.keys(handlers) });
await Promise.all(Object.entries(handlers).flatMap(([topic, handler]) => Array.from({ length: slots }, () => slot(topic, handler))));
await nc.drain(); // the last acks leave
process.exit(0); // a handler that ignores its signal ends here
