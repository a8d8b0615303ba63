-- row_input: the input of a request from its row (T4). $1 job, $2 request.
SELECT body FROM dispatches WHERE job = $1::uuid AND guid = $2::uuid AND kind = 'request'
