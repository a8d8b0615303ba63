-- scan: lets this transaction read tables whole, which no statement on the way of a message does.
SET LOCAL enable_seqscan = on
