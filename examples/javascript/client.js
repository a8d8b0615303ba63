// A client of the HTTP API (docs/api.md). It needs nothing but fetch.
const waitSeconds = 30; // of one request that waits; the server takes up to 60
const pauseMs = 1_000; // before a request is repeated

export class Client {
  // url is the address of `quipu console` or `worker dev`; token is not needed on this machine.
  constructor(url, token) {
    this.base = url.replace(/\/$/, "") + "/api/v1";
    this.headers = token ? { authorization: `Bearer ${token}` } : {};
  }

  // start begins a job. Repeated with the same flow, key and input, it gives the same job.
  start(flow, key, input) {
    return this.#ask("POST", "/jobs", { flow, key, input });
  }

  // signal sends a signal. Repeated with the same id, it does nothing.
  signal(topic, key, payload, id) {
    return this.#ask("POST", "/signals", { topic, key, payload }, { "idempotency-key": id });
  }

  // wait gives the outcome of a job when it has ended.
  async wait(key) {
    for (;;) {
      const outcome = await this.#ask("GET", `/jobs/${encodeURIComponent(key)}/wait?timeout=${waitSeconds}s`);
      if (outcome.ended) return outcome;
    }
  }

  // ask repeats a request while the server is away: each of them may be repeated.
  async #ask(method, path, body, headers) {
    for (;;) {
      const answer = await fetch(this.base + path, {
        method,
        headers: { ...this.headers, ...(body && { "content-type": "application/json" }), ...headers },
        body: body && JSON.stringify(body),
      }).catch((err) => ({ status: 503, ok: false, json: () => ({ code: "unavailable", detail: err.message }) }));
      if (answer.ok) return answer.json();
      const problem = await answer.json();
      if (answer.status !== 503 && answer.status !== 429) throw Object.assign(new Error(problem.detail), problem);
      await new Promise((done) => setTimeout(done, pauseMs));
    }
  }
}
