// Publishes as fast as it may, each event together with a row of business data, and rolls every fourth transaction back:
// node publisher-process.ts <database url> <owner>
import { setTimeout as pause } from 'node:timers/promises';
import { publish } from '../../src/contrib/webhooks/publishing/publish.ts';
import { useWebhooks } from '../../src/contrib/webhooks/webhooks.ts';
import { openDatabase } from '../../src/db/open/open-database.ts';
import { uuidv7 } from '../../src/db/values/uuidv7.ts';

const [url = '', owner = ''] = process.argv.slice(2);
const database = await openDatabase(url);
useWebhooks(database);
const stopping = new AbortController();
process.on('SIGTERM', () => stopping.abort());
process.on('disconnect', () => process.exit(1)); // its parent process is gone
process.send?.({ ready: true });
for (let n = 0; !stopping.signal.aborted; n++) {
  const id = uuidv7();
  await database
    .transaction(async (tx) => {
      await tx.query('insert into business_rows (id) values ($1)', [id]);
      await publish(tx, 'business.changed', { id }, { owner });
      if (n % 4 === 3) throw new Error('rolled back');
    })
    // The database may be restarting; a change that did not commit did not happen.
    .catch(() => undefined);
  await pause(20);
}
await database.close();
process.exit(0);
