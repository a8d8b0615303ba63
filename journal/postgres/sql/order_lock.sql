-- order_lock: locks the row of a child's start: what is read after it holds until the end of the transaction. $1 child.
SELECT guid FROM dispatches WHERE job = $1::uuid AND guid = $1::uuid FOR UPDATE
