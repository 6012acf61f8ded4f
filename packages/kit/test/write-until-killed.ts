// Writes large rows to a SQLite file for as long as it lives and prints the number of each one that is committed: node write-until-killed.ts <file>
import { setImmediate } from 'node:timers/promises';
import { openDatabase } from '../src/db/open/open-database.ts';

const [file = ''] = process.argv.slice(2);
const db = await openDatabase(`sqlite:${file}`);
const body = 'x'.repeat(20_000);
for (;;) {
  const { rows } = await db.transaction((tx) => tx.execute<{ id: number }>('insert into notes (body) values ($1) returning id', [body]));
  process.stdout.write(`${rows[0]?.id}\n`);
  // SQLite answers at once: without a pause neither the output nor the thread would be heard.
  await setImmediate();
}
