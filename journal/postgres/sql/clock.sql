-- clock: the database's clock in microseconds (J5).
SELECT micros()
