import { join } from 'node:path';
import { createApp } from 'kit';
import { appOptions } from './src/app.ts';
import { mail } from './src/mail.ts';

// DATABASE_URL, or the file that DATABASE_URL_FILE names; without them SQLite.
const isDatabaseSet = Boolean(process.env['DATABASE_URL'] || process.env['DATABASE_URL_FILE']);

export default createApp({
  ...appOptions(mail),
  ...(isDatabaseSet ? {} : { database: `sqlite:${join(import.meta.dirname, 'data/app.db')}` }),
});
