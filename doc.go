// Package quipu is an event-sourced journal runtime. It runs jobs as graphs of activities over
// NATS JetStream and Postgres. Each step is recorded exactly once and executed at least once,
// across any crash.
//
// Open connects a Runtime to a space. Deploy stores flow versions and Start begins jobs. Run
// works for the space until its context ends, in one or more roles: engine, workers, schedule,
// retention. Wait waits for the end of a job. Signal wakes hooks, Interrupt ends a job, Resume
// continues a failed one. StartTx and SignalTx write in the caller's own transaction or in that
// of a DoTx. Call runs one handler without a flow. FlowOf gives a flow the Go types of its input
// and output.
//
// Job, Jobs, AllJobs, CountJobs, History, Children and Journal read the state of jobs and what
// happened in them. Operator takes people's decisions on dead letters. Processes lists the live
// processes.
//
// A program also needs three other packages: flow makes flows (flow.Parse, flow.New), workers
// registers handlers and durable functions (workers.Handle, workers.HandleDurable), effects names
// what a handler does outside (effects.Do; DoTx and HandleTx for SQL in the same database).
// ConfigFromEnv reads a Config from the environment. Package quiputest tests all of it without
// servers.
//
//	reg := workers.New()
//	workers.Handle(reg, "payments.charge", func(ctx context.Context, in Charge) (Receipt, error) { … })
//	f, err := flow.Parse("order.yaml", source)
//	rt, err := quipu.Open(ctx, quipu.Config{Postgres: dsn, NATS: url, Space: "shop", Workers: reg})
//	err = rt.Deploy(ctx, f)
//	go rt.Run(ctx)
//	job, err := rt.Start(ctx, "order", "order-42", input)
//	out, err := rt.Wait(ctx, job)
package quipu
