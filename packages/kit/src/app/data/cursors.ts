import { Cursors } from '../../db/sql/keyset/cursor.ts';
import { getOrCreateSecret } from '../../db/rows/secrets.ts';
import type { App } from '../declare/module.ts';

const known = new WeakMap<App, Promise<Cursors>>();

/** What cursors of lists are written with: the keys of CURSOR_KEYS, else one that the default database keeps. Needs open databases. */
export function cursorsOf(app: App): Promise<Cursors> {
  let cursors = known.get(app);
  if (cursors === undefined) {
    cursors = openCursors(app);
    known.set(app, cursors);
    // A database that was away may be back the next time.
    cursors.catch(() => known.delete(app));
  }
  return cursors;
}

async function openCursors({ settings, databases }: App): Promise<Cursors> {
  if (settings.cursorKeys !== undefined) return new Cursors(settings.cursorKeys.split(',').map((key) => Buffer.from(key, 'base64url')));
  const database = databases['default'];
  if (database === undefined) throw new Error('Lists with cursors need a database, or keys in CURSOR_KEYS.');
  return new Cursors([await getOrCreateSecret(database, 'cursors')]);
}
