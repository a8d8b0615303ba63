-- rollback: ends a transaction without a trace.
ROLLBACK
