// Writes the export that waits, of the app in a folder, until it is killed; prints a line after every part. The clock is some seconds ahead.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { App } from '../../src/app/index.ts';
import { buildNextExport } from '../../src/contrib/personal/exports.ts';

const [folder = '', ahead = '0'] = process.argv.slice(2);
process.env['AHEAD'] = ahead;
const { default: app } = (await import(pathToFileURL(join(folder, 'kit.config.ts')).href)) as { default: App };
await app.openDatabases();
let lines = 0;
app.db.observe({
  onQuery({ sql }) {
    if (!/^insert into "?personal_export_parts/.test(sql)) return;
    process.stdout.write(`${++lines}\n`);
    // The kill finds it here: the part before is committed, and this one is not.
    if (ahead === '0' && lines === 2) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  },
});
await buildNextExport(app, 7, new AbortController().signal);
await app.close();
