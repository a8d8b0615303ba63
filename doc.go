// Package quipu is an event-sourced journal runtime: jobs run as graphs of
// activities over NATS JetStream and Postgres, exactly once recorded, at least
// once executed, across any crash.
//
// Open connects a Runtime. Deploy stores flow versions, Start begins jobs, Run
// takes part in the work of a space until its context ends: as an engine, as a
// worker for the topics of a registry, as the clock of flows with a schedule, as
// the one who removes expired jobs, or all of these. Signal wakes the hooks of
// jobs, Interrupt ends a job, Resume
// goes on with one that has failed. StartTx and SignalTx do so in a transaction of the
// caller's own, or of a DoTx. Call runs one handler, without a flow of one's own.
// Wait tells the end of a job; Job, Jobs, History, Children and Journal read how it stands
// and what happened. Operator has what people decide about messages that cannot go on by
// themselves, Processes lists who lives.
//
//	reg := workers.New()
//	workers.Handle(reg, "payments.charge", func(ctx context.Context, in Charge) (Receipt, error) { … })
//	rt, err := quipu.Open(ctx, quipu.Config{Postgres: dsn, NATS: url, Space: "shop", Workers: reg})
//	err = rt.Deploy(ctx, flows...)
//	go rt.Run(ctx)
//	job, err := rt.Start(ctx, "order", "order-42", input)
//	out, err := rt.Wait(ctx, job)
package quipu
