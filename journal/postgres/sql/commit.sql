-- commit: the answer's tag is checked: a failed transaction answers ROLLBACK (J6).
COMMIT
