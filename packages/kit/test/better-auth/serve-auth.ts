// A process of its own for processes.long.test.ts: an app with better-auth on a database that others use, too. Prints its address.
import { openDatabase } from '../../src/db/index.ts';
import { startAuthApp } from './auth-app.ts';

const [url = ''] = process.argv.slice(2);
const { app } = await startAuthApp(await openDatabase(url));
process.stdout.write(`${await app.listen({ port: 0 })}\n`);
process.once('SIGTERM', () => void app.close().then(() => process.exit(0)));
