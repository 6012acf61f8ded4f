import type { App } from '../app/module.ts';
import type { Database, Db } from '../db/db.ts';
import { Cursors } from '../db/keyset/cursor.ts';
import { secretOf } from '../db/secrets.ts';

const known = new WeakMap<Database, Promise<Cursors>>();

/** What cursors of lists on this database are written with: `CURSOR_KEYS`, or a key the installation made for itself. */
export function registryCursors(db: Db, app: App | undefined): Promise<Cursors> {
  const { database } = db;
  let cursors = known.get(database);
  if (cursors === undefined) {
    const keys = (app?.settings.cursorKeys ?? '').split(',').flatMap((key) => (key === '' ? [] : [Buffer.from(key, 'base64url')]));
    cursors =
      keys.length > 0 ? Promise.resolve(new Cursors(keys)) : secretOf(database, 'crud_cursors').then((secret) => new Cursors([secret]));
    cursors.catch(() => known.delete(database));
    known.set(database, cursors);
  }
  return cursors;
}
