// Runs the back-fills of a release, whose folder it is given, until it is killed; prints a line after every batch.
import { pathToFileURL } from 'node:url';
import { type MigrationModule, openDatabase, runBackfills } from '../../src/db/index.ts';

const [url = '', release = '', keys = ''] = process.argv.slice(2);
const { shop } = (await import(pathToFileURL(release).href)) as { shop: MigrationModule };
const db = await openDatabase(url, { dataKeys: JSON.parse(keys) as { keys: string; searchKeys: string } });
let lines = 0;
await runBackfills(db, [shop], { onProgress: (_id, rows) => void (rows > 0 && process.stdout.write(`${++lines}\n`)) });
await db.close();
