-- txe_check: checks what the body of a Tx effect deferred, as long as it is the body's failure.
SET CONSTRAINTS ALL IMMEDIATE
