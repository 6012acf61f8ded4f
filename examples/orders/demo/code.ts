// `npm run code`: the one-time code of the demo's member of staff. Each is good for one login; the next comes within 30 seconds.
import { currentCode } from './one-time-codes.ts';

process.stdout.write(`${currentCode()}\n`);
