"use strict";
// What postgres.js does at Keyhole: `node clinic.js` with PGHOST and so on; a failure is an exception.
const assert = require("node:assert/strict");
const postgres = require("postgres");

async function main() {
  const notices = [];
  const sql = postgres({ max: 2, onnotice: (notice) => notices.push(notice.message) });
  const wards = (rows) => rows.map((row) => row.ward);
  for (const most of [1000, 1000]) {
    const rows = await sql`
      SELECT ward FROM visits WHERE ward IN ${sql(["A", "D"])} GROUP BY ward HAVING count(*) > ${most} ORDER BY ward`;
    assert.deepEqual(wards(rows), ["A"]);
  }
  const text = "SELECT ward FROM visits WHERE ward IN ($1,$2) GROUP BY ward HAVING count(*)>$3 ORDER BY 1";
  assert.deepEqual(wards(await sql.unsafe(text, ["A", "D", 1000])), ["A"]);
  assert.match(notices[0], /^guarantee: a group that truly qualifies is missed/);
  assert.deepEqual(wards(await sql`SELECT DISTINCT ward FROM visits WHERE ward IN ${sql(["B", "A"])} ORDER BY 1`), ["A", "B"]);
  await assert.rejects(sql`SELECT age FROM visits`, {
    code: "42501",
    message: 'KH103: the private table "visits" is used outside a question',
    hint: "Instead you can ask: SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000;",
  });
  await sql.end();
  console.log("done");
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
