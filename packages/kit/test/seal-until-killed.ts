// Records and seals until it is killed; prints the number of entries that are committed after every transaction.
import { auditSink } from '../src/contrib/audit/record/record.ts';
import { sealEntries } from '../src/contrib/audit/chain/seal.ts';
import { openDatabase } from '../src/db/index.ts';
import { systemClock } from '../src/db/clock.ts';

const [url = '', name = ''] = process.argv.slice(2);
const db = await openDatabase(url);
const sink = auditSink({ clock: systemClock, sensitive: () => new Set(), databases: ['default'] });
for (let count = 0; ;) {
  const entries = Array.from({ length: 20 }, () => ({ action: name, target_type: 'thing', target_id: String(count++) }));
  await sink.record(db, entries);
  process.stdout.write(`${count}\n`);
  await sealEntries(db);
}
