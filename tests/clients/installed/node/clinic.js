"use strict";
// What node-postgres does at Keyhole: `node clinic.js` with PGHOST and so on; a failure is an exception.
const assert = require("node:assert/strict");
const { Client, Pool, types } = require("pg");
const Cursor = require("pg-cursor");

const QUESTION = "SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000 ORDER BY ward";
const REFUSED = "SELECT age FROM visits";
const text = (value) => value;
for (const type of [types.builtins.DATE, types.builtins.TIMESTAMP]) types.setTypeParser(type, text);

async function connected(work, options = {}) {
  const client = new Client(options);
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

const sections = {
  async values(client) {
    const { rows } = await client.query("SELECT k.*, ARRAY[id, 2] AS numbers FROM kinds k WHERE id <> 2 ORDER BY id");
    assert.deepEqual(rows[0], {
      id: 1, flag: true, small: 2, big: "9007199254740993", price: "12.30", ratio: 0.1, part: 1.5,
      word: "Ärzte; \"a\" 'b' \\n", code: "x1", day: "2026-02-28", at: "2026-02-28 12:34:56.789",
      badge: "11111111-2222-3333-4444-555555555555", numbers: [1, 2],
    });
    assert.equal(rows[1].price, null);
  },
  async keys(client) {
    const heard = [];
    client.on("notice", (notice) => heard.push(notice.message));
    const expected = {
      ward: ["A", "B"], floor: [1, 2], urgent: [false, true], day: ["2026-01-01", "2026-01-02"],
      hour: ["2026-01-01 00:00:00", "2026-01-01 01:00:00"],
    };
    for (const [key, values] of Object.entries(expected)) {
      const answer = await client.query(QUESTION.replaceAll("ward", key));
      assert.deepEqual(answer.rows.map((row) => row[key]), values);
      assert.equal(answer.command, "SELECT");
      assert.equal(answer.rowCount, 2);
    }
    assert.match(heard[0], /^guarantee: a group that truly qualifies is missed/);
  },
  async parameters(client) {
    const asked = "SELECT ward FROM visits WHERE ward = ANY ($1) AND day >= $2 GROUP BY ward HAVING count(*) > $3 ORDER BY 1";
    for (const name of [undefined, "asked"]) {
      for (const most of [1000, 2500, 1000]) {
        const { rows } = await client.query({ name, text: asked, values: [["A", "B", "D"], "2026-01-01", most] });
        assert.deepEqual(rows.map((row) => row.ward), most === 1000 ? ["A", "B"] : ["A"]);
      }
    }
    const listed = "SELECT ward FROM visits WHERE ward IN ($1,$2) GROUP BY ward HAVING count(*)>$3 ORDER BY 1";
    assert.deepEqual((await client.query(listed, ["A", "D", 1000])).rows, [{ ward: "A" }]);
    const { rows } = await client.query({ text: QUESTION, rowMode: "array" });
    assert.deepEqual(rows, [["A"], ["B"]]);
  },
  async refusals(client) {
    await assert.rejects(client.query(REFUSED), {
      code: "42501", severity: "ERROR", position: "17",
      message: 'KH103: the private table "visits" is used outside a question',
      detail: "Only a question may read a private table: GROUP BY keys HAVING a threshold is crossed.",
      hint: "Instead you can ask: SELECT ward FROM visits GROUP BY ward HAVING count(*) > 1000;",
    });
    await assert.rejects(client.query(REFUSED + " WHERE age > $1", [1]), { code: "42501" });
    await assert.rejects(client.query("COPY wards TO STDOUT"), /KH102/);
    assert.equal((await client.query(QUESTION)).rowCount, 2);
  },
  async transactions(client) {
    await client.query("BEGIN");
    await client.query("SET LOCAL keyhole.tolerance = '20%'");
    await assert.rejects(client.query(REFUSED), /KH103/);
    await assert.rejects(client.query(QUESTION), { code: "25P02" });
    await client.query("ROLLBACK");
    assert.equal((await client.query("SHOW keyhole.tolerance")).rows[0]["keyhole.tolerance"], "10%");
  },
  async cursors(client) {
    const cursor = client.query(new Cursor(QUESTION));
    assert.deepEqual(await cursor.read(1), [{ ward: "A" }]);
    assert.deepEqual(await cursor.read(1), [{ ward: "B" }]);
    assert.deepEqual(await cursor.read(1), []);
    await cursor.close();
    const left = client.query(new Cursor("SELECT g FROM generate_series(1, $1) g", [1000]));
    assert.equal((await left.read(10)).length, 10);
    await left.close();
    assert.equal((await client.query(QUESTION)).rowCount, 2);
  },
  async pools() {
    const pool = new Pool({ max: 3, options: "-c keyhole.tolerance=15%" });
    try {
      const answers = await Promise.all(Array.from({ length: 12 }, () => pool.query(QUESTION)));
      for (const { rows } of answers) assert.deepEqual(rows, [{ ward: "A" }, { ward: "B" }]);
      const { rows } = await pool.query("SHOW keyhole.tolerance");
      assert.equal(rows[0]["keyhole.tolerance"], "15%");
    } finally {
      await pool.end();
    }
  },
  async timeouts() {
    await connected(
      (client) => assert.rejects(client.query("SELECT pg_sleep(600)"), { code: "57014" }),
      { statement_timeout: 200 },
    );
  },
};

(async () => {
  const section = sections[process.argv[2]];
  if (section.length === 0) await section();
  else await connected(section);
  console.log("done");
})().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
