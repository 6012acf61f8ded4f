import type { Database } from '../../db/engine/db.ts';
import type { App } from '../declare/module.ts';

const apps = new WeakMap<Database, App[]>();

/** The apps that are open on a database, the newest first. */
export function appsOfDatabase(database: Database): readonly App[] {
  return apps.get(database) ?? [];
}

export function addAppOfDatabase(database: Database, app: App): void {
  const known = (apps.get(database) ?? []).filter((each) => each !== app);
  apps.set(database, [app, ...known]);
}

export function removeAppOfDatabase(database: Database, app: App): void {
  const left = (apps.get(database) ?? []).filter((each) => each !== app);
  if (left.length === 0) apps.delete(database);
  else apps.set(database, left);
}
