// A process of its own for writers.scaled.test.ts: sends `count` PATCHes with one tag at once and prints their statuses. It waits for a line on
// standard input, so that several processes start together.
import { once } from 'node:events';
import { startShop } from './shop.ts';

const [url = '', id = '', etag = '', count = '0'] = process.argv.slice(2);
const shop = await startShop({ database: url, migrate: false });
process.stdout.write('ready\n');
await once(process.stdin, 'data');
const answers = await Promise.all(
  Array.from({ length: Number(count) }, (_, index) =>
    shop.call('ann', 'PATCH', `orders/${id}`, { quantity: 2 + index }, { 'if-match': etag }),
  ),
);
process.stdout.write(answers.map(({ status }) => status).join());
await shop.close();
process.exit(0);
