// Ask for a trip, approve it, and wait for the end of the job of examples/approval.
import { randomUUID } from "node:crypto";
import { connect } from "./client.js";

const quipu = await connect(process.env.QUIPU_API ?? "http://127.0.0.1:8400", process.env.QUIPU_TOKEN);
const [key = "trip-7"] = process.argv.slice(2);

const job = await quipu.start({ "Idempotency-Key": key }, { flow: "approval", input: { request: "trip to Lima", approver: "Grace" } });
console.log(JSON.stringify(job));
const decision = { topic: "approval.decided", key, payload: { by: "Grace" } };
console.log(JSON.stringify(await quipu.signal({ "Idempotency-Key": randomUUID() }, decision)));
let outcome;
do outcome = await quipu.wait({ job: key, timeout: "30s" });
while (!outcome.ended);
console.log(JSON.stringify(outcome.output ?? outcome.error));
process.exitCode = outcome.state === "completed" ? 0 : 1;
