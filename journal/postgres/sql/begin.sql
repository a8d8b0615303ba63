-- begin: opens a transaction of the isolation that the locks assume (J3).
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE
