import { openDatabase } from '../../src/db/index.ts';
import { startLedger } from './ledger.ts';

/** Sends a create under each key in an app of its own, many at once, until each was done: `write-process.ts <database> <key>…`. */
const [url = '', ...keys] = process.argv.slice(2);
const { call } = await startLedger({ database: await openDatabase(url), migrate: false });
const bodies = await Promise.all(
  keys.map(async (key) => {
    for (;;) {
      const { status, text } = await call('ann', 'POST', 'memos', { title: key }, { 'idempotency-key': key });
      if (status === 201) return text;
      if (status !== 409 && status !== 503) throw new Error(`${key}: ${status} ${text}`);
    }
  }),
);
process.stdout.write(JSON.stringify(bodies));
process.exit(0);
