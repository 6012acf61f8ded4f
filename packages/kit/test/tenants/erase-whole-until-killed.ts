// Erases the tenants whose time has come until it is killed; prints a line before every batch.
import { purgeTenants } from '../../src/contrib/tenants/manage/purge.ts';
import { eraseDue } from '../../src/crud/subjects/erase-due.ts';
import { openDatabase } from '../../src/db/index.ts';
import { type WayOfLogin, wholeApp } from './whole-app.ts';

const [url = '', way = '', folder = ''] = process.argv.slice(2);
const db = await openDatabase(url);
let lines = 0;
const app = wholeApp(db, { way: way as WayOfLogin, folder, onBatch: () => void process.stdout.write(`${++lines}\n`) });
await app.ready();
const eraseSome = () => (way === 'accounts' ? purgeTenants(db) : eraseDue(app, 'tenant', 10));
while ((await eraseSome()) > 0);
await app.close();
await db.close();
