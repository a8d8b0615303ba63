// A worker for Quipu that knows NATS and docs/wire.md, and nothing else.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, headers } from "@nats-io/transport-node";
import { jetstream } from "@nats-io/jetstream";
import { handlers } from "./labels.js";
import * as wire from "./wire.js";

const env = process.env;
const dev = env.QUIPU_NATS ? {} : JSON.parse(readFileSync(".quipu/dev.json")); // of a `worker dev` here
const space = env.QUIPU_SPACE ?? dev.space ?? "default";
const lanes = Number(env.QUIPU_LANES ?? 16); // as in every process of the space
const slots = Number(env.QUIPU_CONCURRENCY ?? 8); // runs at a time, per topic
const drainMs = Number(env.QUIPU_DRAIN_MS ?? 20_000); // for runs under way when it is told to end

const pullMs = 2_000; // life of a pull request; the end waits for the last one
const askMs = 5_000; // until an engine has made the consumer
const publishMs = 5_000; // until a PubAck
const troubleMs = 1_000; // before a request that met trouble comes again
const handBackMs = 10; // … one for another worker
const busyMs = 5_000; // … and one whose run goes on here

const [topic] = Object.keys(handlers); // the rights, the key and the inboxes are of one topic
const keys = wire.readKeys(env.QUIPU_TOPIC_KEY); // what `quipu topic-key` prints; without it the space must not sign

const server = new URL(env.QUIPU_NATS ?? dev.nats); // with user and password, where the server asks for them
const nc = await connect({
  servers: server.host, user: decodeURIComponent(server.username) || undefined, pass: decodeURIComponent(server.password) || undefined, name: "label-worker", maxReconnectAttempts: -1, waitOnFirstConnect: true,
  inboxPrefix: wire.inboxOf(space, topic),
});
const js = jetstream(nc);
const limit = Math.min(wire.maxInline, Math.floor(nc.info.max_payload / 2));

const running = new Set(); // request and turn of the runs in this process
const stopping = new AbortController(); // no new work
const cutOff = new AbortController(); // runs under way are handed back
const say = (event, more) => console.log(JSON.stringify({ event, ...more }));

// bind lets an engine make the topic's consumer, or say that it is there.
async function bind() {
  const { ack_wait: wait, error } = (await nc.request(wire.askOf(space, topic), "", { timeout: askMs })).json();
  if (error) throw new Error(error);
  const name = wire.consumerOf(topic);
  const info = { stream_name: wire.streamOf(space), name, config: { durable_name: name } };
  return { consumer: js.consumers.getConsumerFromInfo(info), beatMs: wait / 1e6 / 3 };
}

// slot handles one request after another: no more is pulled than there are slots.
async function slot(handler) {
  let bound;
  while (!stopping.signal.aborted) {
    try {
      bound ??= await bind();
      const m = await bound.consumer.next({ expires: pullMs });
      if (m) await take(m, handler, bound.beatMs);
    } catch (err) {
      bound = undefined; // server, stream or consumer is gone: bind again
      say("trouble", { topic, error: err.message });
      await sleep(troubleMs, null, { signal: stopping.signal }).catch(() => {});
    }
  }
}

// take brings one delivery to its end: answered and acked, or handed back.
async function take(m, handler, beatMs) {
  let request;
  if (!wire.authentic(keys, topic, m.headers, m.data)) {
    say("not authentic", { topic });
    return m.term("not authentic");
  }
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
    const out = wire.message(request, m.headers, response, lanes, keys);
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
say("ready", { space, topic });
await Promise.all(Array.from({ length: slots }, () => slot(handlers[topic])));
await nc.drain(); // the last acks leave
process.exit(0); // a handler that ignores its signal ends here
