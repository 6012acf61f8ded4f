// Erases a person, or removes rows whose retention is over, in small batches until it is killed; prints a line after every batch.
import { openDatabase } from '../../src/db/index.ts';
import { retainBatch } from '../../src/db/subjects/retention.ts';
import { runErasure } from '../../src/db/subjects/run-erasure.ts';
import { notes, plan } from './killed-tables.ts';

const [url = '', erasure = ''] = process.argv.slice(2);
const db = await openDatabase(url);
let lines = 0;
const done = (): void => void process.stdout.write(`${++lines}\n`);
if (erasure === 'retention') {
  const table = {
    database: db,
    model: notes,
    retention: notes.retention as NonNullable<typeof notes.retention>,
    tables: { models: [], whose: () => ({}) },
  };
  for (;;) {
    const rows = await retainBatch(table, { database: db, batch: 5, now: true });
    done();
    if (rows === 0) break;
  }
} else await runErasure(erasure, { database: db, planned: [{ database: db, plan }], batch: 5, onProgress: done });
await db.close();
