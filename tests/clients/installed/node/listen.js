"use strict";
// What node-postgres hears: `node listen.js CHANNEL` says that it listens, and then the first payload.
const { Client } = require("pg");

async function main() {
  const client = new Client();
  await client.connect();
  const heard = new Promise((resolve) => client.on("notification", (told) => resolve(told.payload)));
  await client.query(`LISTEN ${process.argv[2]}`);
  console.log("listening");
  console.log(await heard);
  await client.end();
}

main();
