// Every operation of the API, by the client that is made from its document.
import assert from "node:assert/strict";
import { connect, Problem } from "../../examples/javascript/client.js";

const { QUIPU_API: url, TOKEN_CLIENT: clientToken, TOKEN_OPERATOR: operatorToken, TOKEN_VIEWER: viewerToken } = process.env;
const [viewer, client, operator] = await Promise.all([viewerToken, clientToken, operatorToken].map((token) => connect(url, token)));
const document = await viewer.describe();
assert.equal(document.openapi, "3.1.0");

// A job from its start to its proof.
const started = await client.start({}, { flow: "hello", key: "h/1", input: { name: "Ada" }, tags: ["t"] });
assert.equal(started.start, "new");
assert.equal((await client.start({ "Idempotency-Key": "h/1" }, { flow: "hello", input: { name: "Ada" }, tags: ["t"] })).start, "already");
const outcome = await client.wait({ job: "h/1", timeout: "60s", until_parked: false });
assert.deepEqual(outcome.output, { text: "Ada" });
assert.equal((await client.get({ job: "h/1" })).job, started.job);
const filter = { state: ["completed", "failed"], flow: "hello", version: "1", prefix: "h", tag: ["t"], from: "2020-01-01T00:00:00Z", to: "2100-01-01T00:00:00Z" };
assert.deepEqual((await viewer.list({ ...filter, limit: 10 })).jobs.map((job) => job.key), ["h/1"]);
assert.equal((await viewer.count(filter)).jobs.completed, 1);
assert.equal((await viewer.list({ parent: started.job })).jobs.length, 0);
assert.equal((await viewer.verify({ job: started.job })).ok, true);
const whole = await client.get({ job: "h/1", journal: true, reasons: true, addresses: true });
assert.deepEqual(whole.input.value, { name: "Ada" });
assert.equal(whole.graph.length, 2);
assert.equal((await viewer.get({ job: "h/1", at: 1 })).at.of, whole.entries);
const { messages } = await viewer.messages({ job: "h/1", at: whole.entries });
assert.deepEqual((await viewer.messages({ job: "h/1", guid: messages[0].guid })).messages, [messages[0]]);
const first = await viewer.events({ job: "h/1", limit: 1 });
assert.equal((await viewer.events({ job: "h/1", cursor: first.next, limit: 1000 })).events.at(-1).kind, "closed");
assert.equal((await viewer.trace({ job: "h/1", limit: 1 })).spans[0].part, "job");
const lines = (await client.export({ job: "h/1" })).trim().split("\n").map((line) => JSON.parse(line));
assert.ok(lines.length > 3);
assert.equal((await viewer.flows()).flows.length, 4);
assert.equal((await viewer.flow({ flow: "hello", version: "1" })).flow, "hello");

// A flow is deployed, and activated.
const next = JSON.stringify({ ...(await viewer.flow({ flow: "hello", version: "1" })), version: "2" });
assert.deepEqual(({ ...(await operator.deploy({}, { definition: next, activate: false })), digest: 0 }),
  { flow: "hello", version: "2", digest: 0, fresh: true, active: false });
await operator.activate({ flow: "hello", version: "2" });
assert.equal((await operator.deploy({}, { definition: next })).active, true);
await operator.activate({ flow: "hello", version: "1" }, {});

// A signal and an interrupt, each once.
await client.start({}, { flow: "review", key: "r1", input: { review: "r1" } });
const signal = { topic: "order.reviewed", key: "r1", payload: { ok: true }, keep: "1h" };
assert.equal((await client.signal({ "Idempotency-Key": "s1" }, signal)).duplicate, false);
assert.equal((await client.signal({ "Idempotency-Key": "s1" }, signal)).duplicate, true);
assert.deepEqual((await client.wait({ job: "r1", timeout: "60s" })).output, { ok: true });
const second = await client.start({}, { flow: "review", key: "r2", input: { review: "r2" } });
assert.equal((await client.interrupt({ job: second.job, "Idempotency-Key": "i1" }, { code: 499, reason: "cancelled" })).duplicate, false);
assert.equal((await client.interrupt({ job: second.job, "Idempotency-Key": "i1" })).duplicate, true);
assert.equal((await client.wait({ job: "r2", timeout: "60s" })).code, 499);

// A job that failed goes on, once.
const bad = await client.start({}, { flow: "bad", key: "b1" });
assert.equal((await client.wait({ job: "b1", timeout: "60s" })).state, "failed");
const again = await operator.resume({ job: bad.job }, { from: "step", reason: "once more" });
assert.equal(again.generation, 2);
const branch = await operator.fork({ job: started.job }, { at: 1, key: "h/2", reason: "from its beginning" });
assert.equal((await viewer.get({ job: "h/2" })).fork_of, started.job);
assert.equal((await client.wait({ job: branch.job, timeout: "60s" })).state, "completed");
assert.equal((await viewer.space()).space, (await viewer.trace({ job: "b1" })).space);

// A job that waits for a person, by its events.
await client.start({}, { flow: "charge", key: "c1" });
const names = [];
for await (const { event, data } of client.wait.events({ job: "c1" })) {
  names.push(event);
  if (event !== "parked") continue;
  const [letter] = (await viewer.deadLetters({ reason: "parked", topic: "cut", all: false, limit: 1 })).dead_letters;
  assert.deepEqual(letter, data.dead_letters[0]);
  await operator.decide({ id: letter.id }, { verdict: "done", result: "charged", reason: "it is in the books" });
}
assert.deepEqual(names, ["parked", "ended"]);

// What the API refuses is a problem with its code.
const refused = (call, code) => assert.rejects(call, (err) => err instanceof Problem && err.code === code);
await refused(client.get({ job: "none" }), "not_found");
await refused(viewer.start({}, { flow: "hello", key: "h2" }), "forbidden");
await refused(client.start({}, { flow: "hello", key: "h2", input: {} }), "invalid_input");
await refused(operator.decide({ id: 1 }, { verdict: "retry" }), "stale");
// Many at a time: what became of each. The job was resumed before, and a closed one is left as it is.
assert.equal((await operator.resumeMany({}, { jobs: [bad.job], reason: "all" })).jobs[0].problem.code, "stale");
assert.equal((await client.interruptMany({}, { jobs: [bad.job], reason: "all" })).jobs[0].did, false);
await refused(operator.resume({ job: bad.job }), "stale");
await refused(operator.fork({ job: started.job }, { at: 1, key: "h/2" }), "cannot_fork");
await refused(operator.deploy({}, { definition: "flow: x" }), "invalid_flow");
await refused(operator.activate({ flow: "hello", version: "9" }), "not_found");
await refused(viewer.get({ job: "h/1", at: 99 }), "not_found");
await assert.rejects(connect(url, "qp_none"), { code: "unauthenticated" });

// What the document does not allow is not sent.
const unsent = (call, text) => assert.rejects(call, (err) => err instanceof TypeError && err.message.includes(text));
await unsent(client.get(), "parameter job is missing");
await unsent(client.get({ job: "h/1", colour: "red" }), "no parameter colour");
await unsent(client.get({ job: 7 }), "it is no string");
await unsent(client.list({ limit: 1001 }), "it is above 1000");
await unsent(client.list({ state: ["done"] }), "it is one of open");
await unsent(client.list({ from: "yesterday" }), "it is no date-time");
await unsent(client.wait({ job: "h/1", timeout: "soon" }), "it does not match");
await unsent(client.start(), "the body is missing");
await unsent(client.start({}, { key: "h2" }), "it lacks one of flow");
await unsent(operator.fork({ job: started.job }, { at: 0, key: "h/3" }), "it is below 1");
await unsent(client.start({}, { flow: "hello", key: "h2", imput: {} }), "no member imput");
await unsent(client.start({}, { flow: "hello", key: "h2", tags: Array(11).fill("t") }), "more than 10 items");
await unsent(client.flows({}, {}), "flows has no body");
