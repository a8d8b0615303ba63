// A client of the HTTP API (docs/api.md). It is made from the OpenAPI document that the server
// gives: a method for each operation, by its operationId. It needs nothing but fetch.
import { check } from "./schema.js";

const patienceMs = 60_000; // for a server that is away or busy
const pauseMs = 1_000; // before a request is repeated, if the server names no time
const again = new Set([429, 503]); // nothing was done, except with the code unknown_outcome

// Problem is an error that the API answers with (RFC 9457). Its code is stable.
export class Problem extends Error {
  constructor(problem) {
    super(`${problem.code}: ${problem.detail}`);
    Object.assign(this, problem);
  }
}

// connect reads the document. url is the address of `quipu console` or `worker dev`; token is not
// needed on this machine. The methods of what it returns take the parameters of the path, the
// query and the headers by their names, and then the body:
//
//	await quipu.start({ "Idempotency-Key": "trip-7" }, { flow: "approval", input: {} });
//	await quipu.wait({ job: "trip-7", timeout: "30s" });
//	for await (const { event, data } of quipu.wait.events({ job: "trip-7" })) …
export async function connect(url, token) {
  const headers = token ? { authorization: `Bearer ${token}` } : {};
  const at = new URL("/api/v1/openapi.json", url);
  const document = await (await ask(at, { headers }, true)).json();
  const base = new URL(document.servers[0].url, at).href;
  const client = {};
  for (const [path, item] of Object.entries(document.paths)) {
    for (const [method, described] of Object.entries(item)) {
      const call = (kind) => async (parameters = {}, body = undefined) => {
        const r = request(document, path, method, described, parameters, body);
        return ask(base + r.path, { ...r, headers: { ...headers, ...r.headers, accept: kind } }, r.repeatable);
      };
      const send = call("application/json, application/jsonl");
      client[described.operationId] = async (...given) => read(await send(...given));
      if (described.responses[200]?.content?.["text/event-stream"]) {
        client[described.operationId].events = async function* (...given) {
          yield* events(await call("text/event-stream")(...given));
        };
      }
    }
  }
  return client;
}

// request is a call as its operation describes it. It throws a TypeError for a parameter or a body
// that the document does not allow: then nothing is sent.
function request(document, path, method, described, parameters, body) {
  const id = described.operationId;
  const left = { ...parameters };
  const query = new URLSearchParams();
  const headers = {};
  for (const one of (described.parameters ?? []).map((p) => resolve(document, p))) {
    const value = left[one.name];
    delete left[one.name];
    if (value === undefined) {
      if (one.required) throw new TypeError(`${id}: parameter ${one.name} is missing`);
      continue;
    }
    check(document, one.schema, value, `${id}: parameter ${one.name}`);
    if (one.in === "path") path = path.replace(`{${one.name}}`, encodeURIComponent(value));
    else if (one.in === "header") headers[one.name] = String(value);
    else if (one.in === "query") for (const v of [value].flat()) query.append(one.name, v);
    else throw new TypeError(`${id}: parameter ${one.name} is in ${one.in}, which this client does not know`);
  }
  for (const name of Object.keys(left)) throw new TypeError(`${id} has no parameter ${name}`);
  const content = described.requestBody?.content["application/json"];
  if (content) headers["content-type"] = "application/json";
  if (body !== undefined) {
    if (!content) throw new TypeError(`${id} has no body`);
    check(document, content.schema, body, `${id}: body`);
  } else if (described.requestBody?.required) throw new TypeError(`${id}: the body is missing`);
  const repeatable = method === "get" || "Idempotency-Key" in parameters;
  if (query.size > 0) path += `?${query}`;
  return { path, method: method.toUpperCase(), headers, body: body && JSON.stringify(body), repeatable };
}

// resolve follows a reference.
const resolve = (document, node) => (node.$ref ? node.$ref.slice(2).split("/").reduce((at, step) => at[step], document) : node);

// ask sends a request, and again while the server is away or busy. If a request may have taken
// effect, it is only sent again if that is repeatable.
async function ask(url, options, repeatable) {
  for (const end = Date.now() + patienceMs; ; ) {
    let problem, pause;
    try {
      const answer = await fetch(url, options);
      if (answer.ok) return answer;
      problem = await answer.json();
      pause = Number(answer.headers.get("retry-after")) * 1_000;
    } catch (err) { // no answer
      problem = { code: "unknown_outcome", status: 503, detail: `${url}: ${err.cause?.message ?? err.message}` };
    }
    const unsure = problem.code === "unknown_outcome" && !repeatable;
    if (!again.has(problem.status) || unsure || Date.now() > end) throw new Problem(problem);
    await new Promise((done) => setTimeout(done, pause || pauseMs));
  }
}

// read is the value of an answer: nothing, JSON, or the text of JSON Lines. A success that is none of
// them comes from something else than the API.
async function read(answer) {
  if (answer.status === 204) return undefined;
  const type = answer.headers.get("content-type") ?? "";
  if (/^application\/json(;|$)/.test(type)) return answer.json();
  if (/^application\/jsonl(;|$)/.test(type)) return answer.text();
  throw new Problem({ code: "unknown_outcome", status: answer.status, detail: `${answer.url} answers without JSON: it may have taken effect` });
}

// events are the events of a stream until it ends.
async function* events(answer) {
  let text = "";
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    const parts = (text + chunk).split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const lines = part.split("\n");
      const field = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (field("data")) yield { event: field("event"), data: JSON.parse(field("data")) };
    }
  }
}
