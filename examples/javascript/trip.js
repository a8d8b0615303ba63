// Ask for a trip, approve it, and wait for the end of the job of examples/approval.
import { randomUUID } from "node:crypto";
import { Client } from "./client.js";

const quipu = new Client(process.env.QUIPU_API ?? "http://127.0.0.1:8400", process.env.QUIPU_TOKEN);
const [key = "trip-7"] = process.argv.slice(2);

const job = await quipu.start("approval", key, { request: "trip to Lima", approver: "Grace" });
console.log(JSON.stringify(job));
console.log(JSON.stringify(await quipu.signal("approval.decided", key, { by: "Grace" }, randomUUID())));
const outcome = await quipu.wait(key);
console.log(JSON.stringify(outcome.output ?? outcome.error));
process.exitCode = outcome.state === "completed" ? 0 : 1;
