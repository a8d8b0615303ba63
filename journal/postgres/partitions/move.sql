-- Moves the history of the job {id} from the number {from} to {to} in another partition (W11). The rev of its rows
-- rises, so that a decision that has read the old number is taken again (W6).
UPDATE dispatches SET rev = rev + 1 WHERE job = '{id}';
UPDATE entries SET n = {to} WHERE n = {from};
UPDATE receipts SET n = {to} WHERE n = {from};
UPDATE instances SET n = {to} WHERE n = {from};
UPDATE effects SET n = {to} WHERE n = {from};
UPDATE payloads SET n = {to} WHERE n = {from};
UPDATE resolved_waits SET n = {to} WHERE n = {from};
UPDATE jobs SET n = {to} WHERE id = '{id}';
