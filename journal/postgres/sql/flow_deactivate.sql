-- flow_deactivate: takes the active mark from every other version. $1 name, $2 version.
UPDATE flows SET active = false WHERE name = $1::text AND active AND version <> $2::text
  AND EXISTS (SELECT FROM flows WHERE name = $1::text AND version = $2::text)
